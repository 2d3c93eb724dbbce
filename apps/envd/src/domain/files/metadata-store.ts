/** Words that belong to a file itself: they follow it to another name, and go when it goes. */
export type Metadata = Readonly<Record<string, string>>

/** What tells one file from another as long as both exist. */
export interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
}

export interface MetadataStore {
  /** Of what lies at the path itself, with its identity as it was just seen there; a link has none. */
  read(path: string | Uint8Array, identity: FileIdentity): Metadata
  /** Exactly these belong to the file from now on. Links are followed. */
  replace(path: string, metadata: Metadata): Promise<void>
  /** To be told of each rename that was made by us, of a file or a folder. */
  moved(from: string, to: string): void
  close(): Promise<void>
}
