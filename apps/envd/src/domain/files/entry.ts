/** File system entries and the operations on them. */
import type { Metadata } from './metadata-store.ts'
import type { User } from '../access/user.ts'

export interface Entry {
  readonly name: string
  readonly path: string
  /** Kind of the target for a symlink. Sockets, devices, pipes and broken links are `other`. */
  readonly kind: 'file' | 'folder' | 'other'
  /** Size of the entry itself; for a symlink, the length of its target path. */
  readonly size: bigint
  /** Nine permission bits. For a symlink those of its target, or 0 if broken. */
  readonly mode: number
  readonly permissions: string
  readonly owner: string
  readonly group: string
  /** Unix time in nanoseconds. */
  readonly modifiedNs: bigint
  /** Resolved target of a symlink, or the path of the link itself if broken. Absent for other entries. */
  readonly target?: string
  readonly metadata: Metadata
}

/**
 * Operations run with the rights of envd (root). Faults: `not_found`, `invalid` for impossible paths, else
 * `internal`.
 */
export interface Entries {
  /** Does not follow a symlink at the end of the path. */
  describe(path: string): Promise<Entry>
  /** Creates the folder and missing parents, owned by `owner`. Returns false if the folder existed. */
  makeFolder(path: string, owner: User): Promise<boolean>
  /** Renames an entry. Missing parents of the destination are created first, even if the source does not exist. */
  move(source: string, destination: string, owner: User): Promise<void>
  /**
   * Lists a folder down to `depth` levels, sorted by name, each folder before its contents. Does not follow
   * symlinks inside. More faults: `invalid` if the path is not a folder, `conflict` for a symlink loop, `exhausted`
   * above the entry limit.
   */
  list(path: string, options: ListOptions): Promise<Entry[]>
  /** Removes the entry recursively. A missing entry is not an error. */
  remove(path: string, signal: AbortSignal): Promise<void>
}

export interface ListOptions {
  readonly depth: number
  readonly signal: AbortSignal
}
