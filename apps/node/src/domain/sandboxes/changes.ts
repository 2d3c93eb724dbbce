import { Fault } from '@atoll/kit/fault'

/** Changes of a sandbox's root file system, compared with the layers of its template. */

export const changeKinds = ['added', 'modified', 'deleted'] as const
export type ChangeKind = (typeof changeKinds)[number]

export const entryTypes = ['file', 'directory', 'symlink', 'other'] as const
export type EntryType = (typeof entryTypes)[number]

/** Size, mode and time are those before the deletion if the entry is deleted. */
export interface FileChange {
  /** Absolute. Bytes, because names need not be text. */
  readonly path: Buffer
  readonly kind: ChangeKind
  readonly type: EntryType
  readonly sizeBytes: number
  readonly mode: number
  readonly modifiedAtMs: number
}

/** Both absent sides never occur: such an entry has not changed. */
export interface ChangedContent {
  readonly before?: FileSide
  readonly after?: FileSide
}

export interface FileSide {
  readonly type: EntryType
  readonly sizeBytes: number
  readonly mode: number
  /** Content of a file, target of a symbolic link, empty for others. */
  readonly content: Buffer
  readonly isTruncated: boolean
}

export const maxPathBytes = 4096

/** Splits an absolute path into its names. */
export function splitPath(path: Buffer): Buffer[] {
  const text = path.toString('latin1')
  const names = text.split('/').filter((name) => name !== '' && name !== '.')
  const isValid =
    text.startsWith('/') &&
    path.length <= maxPathBytes &&
    !text.includes('\0') &&
    names.every((name) => name !== '..' && name.length <= 255)
  if (isValid) return names.map((name) => Buffer.from(name, 'latin1'))
  throw new Fault(
    'invalid',
    'bad_path',
    `A path must start with /, have no .. and at most ${maxPathBytes} bytes`,
  )
}

export interface ListQuery {
  /** List this entry and all below it. */
  readonly path: Buffer
  /** `next` of the previous page. */
  readonly after?: Buffer | undefined
  readonly limit: number
}

export interface ChangeList {
  readonly changes: readonly FileChange[]
  /** Present if there may be more. */
  readonly next?: Buffer
  /** False if directories were too large or too deep to list. */
  readonly isComplete: boolean
}
