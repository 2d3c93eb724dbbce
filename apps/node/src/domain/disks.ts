/**
 * Images of disks: sparse files of the promised size. A copy shares its blocks with the original where the file system
 * can do that, and else takes as much as is in use; it never depends on the original.
 */
export interface Disks {
  /** A new, empty one. */
  create(image: string, sizeMb: number): Promise<void>
  copy(from: string, to: string): Promise<void>
  /** Survives whatever would lose the page cache. */
  flush(image: string): Promise<void>
  /** What it takes on the host's disk. */
  usedBytes(image: string): Promise<number>
  /** Whether a copy costs next to nothing. */
  sharesBlocks(): Promise<boolean>
  /** Sets space of the host aside for an operation. A fault when there is less than this, so that it does not fail half way. */
  holdRoom(bytes: number, purpose: string): Disposable
}
