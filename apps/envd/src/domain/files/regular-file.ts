/** Whole-file reads and writes. */
import type { User } from '../access/user.ts'

/** Operates on regular files only: a pipe or device could block the caller forever. */
export interface RegularFiles {
  /** Faults: `not_found`, `invalid` if the path is not a regular file, `internal` for other system errors. */
  open(path: string): Promise<ReadableFile>
  /**
   * Overwrites the file with `content`. Creates missing parents; new folders and the file belong to `owner`. A
   * failure leaves the bytes written so far. Each chunk is consumed before the next is requested. Faults as for
   * `open`, and `disk_full`.
   */
  write(path: string, content: AsyncIterable<Uint8Array>, owner: User): Promise<void>
  /** Concatenates `sources` into `destination` atomically, then deletes them. */
  concatenate(sources: readonly string[], destination: string, owner: User): Promise<void>
}

export interface ReadableFile extends AsyncDisposable {
  /** Undefined if the system reports no size, as for files in /proc. */
  readonly size: number | undefined
  readonly modifiedMs: number
  /** First bytes of the file. */
  readonly head: Uint8Array
  /**
   * Reads `length` bytes, or up to the end; yields less if the file was truncated. A chunk is valid until the next
   * is requested.
   */
  read(start: number, length?: number): AsyncIterable<Uint8Array>
}

/** Fault reason if the disk is full. */
export const diskFull = 'disk_full'
