/** What lies at a path, and what can be done with it. */
import type { Metadata } from './metadata-store.ts'
import type { User } from '../access/user.ts'

export interface Entry {
  readonly name: string
  readonly path: string
  /** Of a link: what it leads to. Sockets, devices, pipes and broken links are `other`. */
  readonly kind: 'file' | 'folder' | 'other'
  /** Of the entry itself: a link's is its length. */
  readonly size: bigint
  /** Nine bits; of a link those of its target, 0 when it is broken. */
  readonly mode: number
  readonly permissions: string
  readonly owner: string
  readonly group: string
  /** Since 1970. */
  readonly modifiedNs: bigint
  /** Only for links: where they lead in the end, or the path of the link itself when that is nowhere. */
  readonly target?: string
  readonly metadata: Metadata
}

/** All with the rights of the daemon. Faults: `not_found`, `invalid` for impossible paths, `internal` for the rest. */
export interface Entries {
  /** Does not follow a link at the end of the path. */
  describe(path: string): Promise<Entry>
  /** With all that is missing above; what is made belongs to `owner`. False when the folder was there already. */
  makeFolder(path: string, owner: User): Promise<boolean>
  /** Renames; the folders above the destination are made even when there is nothing to rename. */
  move(source: string, destination: string, owner: User): Promise<void>
  /**
   * The content of a folder, so many levels deep, in order of names, each folder before what is in it. Links inside are
   * not followed. Faults besides: `invalid` for what is no folder, `conflict` for a loop of links, `exhausted` for more
   * entries than one answer may hold.
   */
  list(path: string, options: ListOptions): Promise<Entry[]>
  /** With all that is in it. Nothing there is no failure. */
  remove(path: string, signal: AbortSignal): Promise<void>
}

export interface ListOptions {
  readonly depth: number
  readonly signal: AbortSignal
}
