/** Files that a sandbox changed, compared with its template. */

export interface FileChange {
  readonly path: string
  readonly kind: 'added' | 'modified' | 'deleted'
  readonly type: FileType
  readonly sizeBytes: number
  readonly mode: number
  readonly modifiedAt: string
}

export type FileType = 'file' | 'directory' | 'symlink' | 'other'

export interface ChangedFile {
  readonly path: string
  readonly before?: FileSide
  readonly after?: FileSide
}

export interface FileSide {
  readonly type: FileType
  readonly sizeBytes: number
  readonly mode: number
  /** Absent: not text. */
  readonly content?: string
  readonly isTruncated: boolean
}

export interface ChangeNode {
  list(sandboxId: string, query: ChangeQuery, signal: AbortSignal): Promise<ChangePage>
  /** Returns undefined if the sandbox has not changed this entry. */
  read(sandboxId: string, path: Buffer, signal: AbortSignal): Promise<ChangedFile | undefined>
}

export interface ChangeQuery {
  readonly path: Buffer
  readonly after: Buffer | undefined
  readonly limit: number
}

export interface ChangePage {
  readonly changes: FileChange[]
  readonly next: Buffer | undefined
  readonly isComplete: boolean
}
