/** Allows the kernel to write gigabytes to a busy disk, after the last process of a sandbox has ended. */
export const diskWriteLimitMs = 600_000

/**
 * Disk images: sparse files of the promised size. A copy shares blocks with the original where the file system supports
 * reflinks; otherwise it takes as much space as the original uses. A copy never depends on the original.
 */
export interface Disks {
  /** Creates an empty image. */
  create(image: string, sizeMb: number): Promise<void>
  copy(from: string, to: string): Promise<void>
  /** Waits until nothing has the image mounted. Throws when that takes too long. */
  awaitUnused(image: string, limitMs?: number): Promise<void>
  /** Syncs the image to stable storage. */
  flush(image: string): Promise<void>
  /** Bytes allocated on the host. */
  usedBytes(image: string): Promise<number>
  /** Whether the image has a second name, under which a backup reads it. */
  isLinked(image: string): Promise<boolean>
  /** Whether copies share blocks with the original and so cost almost nothing. */
  sharesBlocks(): Promise<boolean>
  /**
   * Reserves host space for an operation. Throws a fault when less is free, so the operation does not fail half way.
   */
  reserveSpace(bytes: number, purpose: string): Disposable
}
