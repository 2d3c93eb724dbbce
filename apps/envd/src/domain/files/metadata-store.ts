/** Key-value metadata of a file. It follows the file through renames and is deleted with it. */
export type Metadata = Readonly<Record<string, string>>

/** Device and inode number: identifies a file while it exists. */
export interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
}

export interface MetadataStore {
  /** Returns the metadata of the entry at `path`, whose identity the caller has just read. Symlinks have none. */
  read(path: string | Uint8Array, identity: FileIdentity): Metadata
  /** Replaces all metadata of the file. Follows symlinks. */
  replace(path: string, metadata: Metadata): Promise<void>
  /** Must be called after each rename of a file or folder that envd makes. */
  handleMove(from: string, to: string): void
  close(): Promise<void>
}
