/** The files that clients read and write whole. */
import type { User } from '../access/user.ts'

/** Nothing but a regular file is ever read or written: a pipe or a device would keep its caller waiting for ever. */
export interface RegularFiles {
  /** Faults: `not_found`, `invalid` for a folder or anything else that is no file, `internal` for what the system says. */
  open(path: string): Promise<ReadableFile>
  /**
   * Writes all of `content`, over what is there. Missing folders above are made, and all that is made or written belongs
   * to `owner`. What was written before a failure stays. Of `content` nothing is kept when more of it is asked for. Faults as above, and `disk_full`.
   */
  write(path: string, content: AsyncIterable<Uint8Array>, owner: User): Promise<void>
  /** Puts the contents of `sources` together in `destination`, at once or not at all, and removes them. */
  concatenate(sources: readonly string[], destination: string, owner: User): Promise<void>
}

export interface ReadableFile extends AsyncDisposable {
  /** Undefined for files whose size the system does not tell, as those of /proc. */
  readonly size: number | undefined
  readonly modifiedMs: number
  /** How it begins. */
  readonly head: Uint8Array
  /**
   * To the end, or until `length` bytes were read; of a file that has become shorter fewer come. A piece is good until
   * the next is asked for.
   */
  read(start: number, length?: number): AsyncIterable<Uint8Array>
}

/** The reason of the fault when no room is left. */
export const diskFull = 'disk_full'
