import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { inotifyMask, openInotify } from '../../linux/inotify.ts'
import type { InotifyEvent } from '../../linux/inotify.ts'
import type { Libc } from '../../linux/libc.ts'
import { toText } from '../files/byte-path.ts'
import { createFolderMoves } from './folder-moves.ts'
import { createFolderTrees, reportChanges } from './folder-trees.ts'
import type { Watcher } from './folder-trees.ts'
import { createWatchedFolders } from './watched-folders.ts'
import type { WatchedFolder } from './watched-folders.ts'

export interface InotifyInstance {
  join(watcher: Watcher): { start(): Promise<void>; close(): void }
}

/** Starts an inotify instance, which closes itself and calls `onEnd` after its last watcher was removed. */
export function startInotifyInstance(libc: Libc, onEnd: () => void): InotifyInstance {
  const inotify = openInotify(libc, () => void pump())
  const watchers = new Set<Watcher>()
  const folders = createWatchedFolders<Watcher>(inotify)
  const trees = createFolderTrees(folders, (watcher) => watchers.has(watcher))
  const moves = createFolderMoves(folders)
  let isPumping = false
  let isPending = false

  return {
    join(watcher) {
      watchers.add(watcher)
      return { start: () => startWatcher(watcher), close: () => removeWatcher(watcher) }
    },
  }

  async function startWatcher(watcher: Watcher): Promise<void> {
    if (watcher.recursive) await trees.watch(watcher, '', { report: false })
    else folders.add(watcher, '')
    if (watcher.folders.has('')) return
    throw new Fault('not_found', 'file_not_found', `'${toText(watcher.root)}' no longer exists`)
  }

  function removeWatcher(watcher: Watcher): void {
    if (!watchers.delete(watcher)) return
    folders.remove(watcher, '')
    if (watchers.size > 0) return
    inotify.close()
    onEnd()
  }

  function fail(watcher: Watcher, cause: unknown): void {
    if (!watchers.has(watcher)) return
    removeWatcher(watcher)
    watcher.listener.failed(cause instanceof Error ? cause : new Error(String(cause)))
  }

  /** Processes events in order until none are left. */
  async function pump(): Promise<void> {
    isPending = true
    if (isPumping) return
    isPumping = true
    try {
      while (isPending) {
        isPending = false
        await handleAllEvents()
        moves.dropStale(0)
        trees.clearReported()
      }
    } catch (cause) {
      for (const watcher of [...watchers]) fail(watcher, cause)
    } finally {
      isPumping = false
    }
  }

  async function handleAllEvents(): Promise<void> {
    for (let events = inotify.read(); events.length > 0; events = inotify.read()) {
      for (const event of events) await handleEvent(event)
      await yieldToEventLoop()
    }
  }

  async function handleEvent(event: InotifyEvent): Promise<void> {
    moves.dropStale(event.cookie)
    if (event.mask & inotifyMask.overflow) {
      for (const watcher of [...watchers]) fail(watcher, overflowFault())
      return
    }
    for (const folder of folders.of(event.watch)) {
      try {
        if (event.name === '') handleRootEvent(folder, event.mask)
        else await handleChildEvent(folder, event)
      } catch (cause) {
        fail(folder.owner, cause)
      }
    }
    if (event.mask & (inotifyMask.ignored | inotifyMask.unmount)) folders.forgetWatch(event.watch)
  }

  async function handleChildEvent(
    folder: WatchedFolder<Watcher>,
    { name, mask, cookie }: InotifyEvent,
  ): Promise<void> {
    const { owner } = folder
    const inner = folder.relative === '' ? name : `${folder.relative}/${name}`
    const isArrival = (mask & (inotifyMask.create | inotifyMask.movedTo)) !== 0
    if (isArrival && folder.reported.delete(name)) return
    reportChanges(owner, toText(inner), mask)
    if (!owner.recursive || !(mask & inotifyMask.isFolder)) return
    if (mask & inotifyMask.movedFrom) moves.movedFrom(cookie, owner, inner)
    if (!isArrival) return
    const source = moves.takeSource(cookie, owner)
    const renamed = source === undefined ? [] : folders.rename(owner, source, inner)
    // A new folder may have been moved before or while it was scanned.
    for (const each of renamed) if (each.scanned !== 'all') await trees.scan(each, true)
    if (renamed.length > 0) return
    const report = source !== undefined || (mask & inotifyMask.create) !== 0
    const isWatched = await trees.watch(owner, inner, { report })
    // A parent that was moved meanwhile is scanned again at its new path.
    if (!isWatched) folder.scanned = 'part'
  }
}

/** Changes of a subfolder itself are reported by its parent. */
function handleRootEvent({ owner, relative }: WatchedFolder<Watcher>, mask: number): void {
  if (relative === '') reportChanges(owner, '.', mask)
}

function overflowFault(): Fault {
  const text =
    'The watch was closed: the kernel dropped changes, because there were too many. Start a new watch.'
  return new Fault('internal', 'watch_overflow', text)
}
