/** Registry of inotify watches by watcher and path. Watchers of the same folder share one inotify watch. */
import { Fault } from '@atoll/kit/fault'
import type { Inotify } from '../../linux/inotify.ts'
import { toPath } from '../files/byte-path.ts'
import type { BytePath } from '../files/byte-path.ts'
import { watchedBits } from './change-kinds.ts'

export interface WatchedFolder<Owner> {
  readonly owner: Owner
  readonly watch: number
  /** Path relative to the watched root; empty for the root itself. */
  relative: BytePath
  /** Entries reported by a scan, which inotify may report again. */
  readonly reported: Set<BytePath>
  /** How much of the subfolders is watched; the folder may be moved away before all are. */
  scanned: 'nothing' | 'part' | 'all'
}

export interface FolderOwner<Owner> {
  readonly root: BytePath
  readonly folders: Map<BytePath, WatchedFolder<Owner>>
}

export interface WatchedFolders<Owner> {
  /** Returns undefined if the folder does not exist. */
  add(
    owner: Owner,
    relative: BytePath,
  ): { folder: WatchedFolder<Owner>; isNew: boolean } | undefined
  of(watch: number): readonly WatchedFolder<Owner>[]
  /** Drops a watch that the kernel has removed. */
  forgetWatch(watch: number): void
  /** Removes the folder and its subfolders. */
  remove(owner: Owner, relative: BytePath): void
  /** Returns the renamed folders; none if `from` was not watched. */
  rename(owner: Owner, from: BytePath, to: BytePath): readonly WatchedFolder<Owner>[]
}

export function createWatchedFolders<Owner extends FolderOwner<Owner>>(
  inotify: Inotify,
): WatchedFolders<Owner> {
  const byWatch = new Map<number, Set<WatchedFolder<Owner>>>()
  let count = 0
  return {
    add(owner, relative) {
      if (count >= folderLimit) throwTooMany()
      const path = relative === '' ? owner.root : `${owner.root}/${relative}`
      const follow = relative === '' ? 0 : dontFollow
      const watch = inotify.add(toPath(path), watchedBits | follow)
      if (watch === undefined) return undefined
      const former = owner.folders.get(relative)
      if (former?.watch === watch) return { folder: former, isNew: false }
      if (former) forget(former)
      const folder: WatchedFolder<Owner> = {
        owner,
        watch,
        relative,
        reported: new Set(),
        scanned: 'nothing',
      }
      owner.folders.set(relative, folder)
      const sharing = byWatch.get(watch) ?? new Set()
      byWatch.set(watch, sharing.add(folder))
      count += 1
      return { folder, isNew: true }
    },
    of: (watch) => [...(byWatch.get(watch) ?? [])],
    forgetWatch(watch) {
      const folders = byWatch.get(watch)
      byWatch.delete(watch)
      for (const folder of folders ?? []) forget(folder)
    },
    remove(owner, relative) {
      for (const folder of below(owner, relative)) forget(folder)
    },
    rename(owner, from, to) {
      const renamed = below(owner, from)
      for (const folder of renamed) {
        owner.folders.delete(folder.relative)
        folder.relative = to + folder.relative.slice(from.length)
        const former = owner.folders.get(folder.relative)
        if (former) forget(former)
        owner.folders.set(folder.relative, folder)
      }
      return renamed
    },
  }

  function forget(folder: WatchedFolder<Owner>): void {
    const { owner, relative, watch } = folder
    if (owner.folders.get(relative) === folder) owner.folders.delete(relative)
    const sharing = byWatch.get(watch)
    count -= 1
    if (!sharing?.delete(folder) || sharing.size > 0) return
    byWatch.delete(watch)
    inotify.remove(watch)
  }
}

/** Returns the folder and its subfolders. */
function below<Owner extends FolderOwner<Owner>>(
  owner: Owner,
  relative: BytePath,
): WatchedFolder<Owner>[] {
  if (relative === '') return [...owner.folders.values()]
  return [...owner.folders.values()].filter(
    (folder) => folder.relative === relative || folder.relative.startsWith(`${relative}/`),
  )
}

/** IN_DONT_FOLLOW: a folder replaced by a symlink must not extend the watch beyond the tree. */
const dontFollow = 0x200_0000

const folderLimit = 50_000

function throwTooMany(): never {
  const text = `Watch limit reached (${folderLimit} folders). Watch a smaller tree, or without recursion.`
  throw new Fault('internal', 'too_many_watches', text)
}
