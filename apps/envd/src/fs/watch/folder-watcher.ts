/**
 * Watches folders with one inotify instance for all watchers. Threats: programs in the sandbox control the number
 * of changes, and may rename and remove folders at any time. All counts are bounded. After an inotify overflow
 * every watcher fails, because the lost changes may be of any of them.
 */
import { opendir, stat, statfs } from 'node:fs/promises'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { isNetworkMount } from '../../domain/watch/watch.ts'
import type { ChangeListener, FolderWatcher, WatchOptions } from '../../domain/watch/watch.ts'
import { inotifyMask, openInotify } from '../../linux/inotify.ts'
import type { InotifyEvent } from '../../linux/inotify.ts'
import type { Libc } from '../../linux/libc.ts'
import { toBytes, toPath, toText } from '../files/byte-path.ts'
import type { BytePath } from '../files/byte-path.ts'
import { changeKinds } from './change-kinds.ts'
import { fileFault } from '../files/file-fault.ts'
import { createWatchedFolders } from './watched-folders.ts'
import type { WatchedFolder, FolderOwner } from './watched-folders.ts'

interface Watcher extends FolderOwner<Watcher> {
  readonly recursive: boolean
  readonly listener: ChangeListener
  readonly folders: Map<BytePath, WatchedFolder<Watcher>>
}

export function inotifyFolderWatcher(libc: () => Libc): FolderWatcher {
  let instance: InotifyInstance | undefined
  return {
    async watch(options, listener) {
      await checkWatchable(options).catch((thrown: unknown) => {
        throw fileFault(thrown, options.path)
      })
      const { path, recursive } = options
      const watcher: Watcher = { root: toBytes(path), recursive, listener, folders: new Map() }
      instance ??= startInotifyInstance(libc(), () => (instance = undefined))
      const { close, start } = instance.join(watcher)
      try {
        await start()
      } catch (thrown) {
        close()
        throw thrown
      }
      return { close }
    },
  }
}

async function checkWatchable({ path, allowNetworkMounts }: WatchOptions): Promise<void> {
  if (!(await stat(path)).isDirectory()) refuse(`'${path}' is not a directory`)
  if (!allowNetworkMounts && isNetworkMount((await statfs(path)).type >>> 0)) {
    refuse(
      `'${path}' is on a network mount, which hides remote changes. Set allowNetworkMounts to watch it.`,
    )
  }
}

function refuse(message: string): never {
  throw new Fault('invalid', 'not_watchable', message)
}

interface InotifyInstance {
  join(watcher: Watcher): { start(): Promise<void>; close(): void }
}

/** Exists while there are watchers. */
function startInotifyInstance(libc: Libc, onEnd: () => void): InotifyInstance {
  const inotify = openInotify(libc, () => void pump())
  const folders = createWatchedFolders<Watcher>(inotify)
  const watchers = new Set<Watcher>()
  const reported: WatchedFolder<Watcher>[] = []
  /** Folders that were moved away and whose destination is not known yet. */
  let pendingMoves: {
    readonly cookie: number
    readonly watcher: Watcher
    readonly from: BytePath
  }[] = []
  let isPumping = false
  let isPending = false

  return {
    join(watcher) {
      watchers.add(watcher)
      return { start: () => startWatcher(watcher), close: () => removeWatcher(watcher) }
    },
  }

  async function startWatcher(watcher: Watcher): Promise<void> {
    if (watcher.recursive) await watchTree(watcher, '', { report: false })
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
        dropStaleMoves(0)
        for (const folder of reported.splice(0)) folder.reported.clear()
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
    dropStaleMoves(event.cookie)
    if (event.mask & inotifyMask.overflow) {
      for (const watcher of [...watchers]) fail(watcher, overflow())
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

  /** Changes of a subfolder itself are reported by its parent. */
  function handleRootEvent({ owner, relative }: WatchedFolder<Watcher>, mask: number): void {
    if (relative === '') report(owner, '.', mask)
  }

  async function handleChildEvent(
    folder: WatchedFolder<Watcher>,
    event: InotifyEvent,
  ): Promise<void> {
    const { owner } = folder
    const { name, mask, cookie } = event
    const inner = folder.relative === '' ? name : `${folder.relative}/${name}`
    const isArrival = (mask & (inotifyMask.create | inotifyMask.movedTo)) !== 0
    if (isArrival && folder.reported.delete(name)) return
    report(owner, toText(inner), mask)
    if (!owner.recursive || !(mask & inotifyMask.isFolder)) return
    if (mask & inotifyMask.movedFrom) pendingMoves.push({ cookie, watcher: owner, from: inner })
    if (!isArrival) return
    const left = pendingMoves.find((move) => move.cookie === cookie && move.watcher === owner)
    pendingMoves = pendingMoves.filter((move) => move !== left)
    const renamed = left ? folders.rename(owner, left.from, inner) : []
    // A new folder may have been moved before or while it was scanned.
    for (const late of renamed) if (late.scanned !== 'all') await scan(late, true)
    if (renamed.length > 0) return
    await watchTree(owner, inner, {
      report: left !== undefined || (mask & inotifyMask.create) !== 0,
    })
  }

  /** Both halves of a rename are adjacent events. After any other event, the folder has left the tree. */
  function dropStaleMoves(cookie: number): void {
    if (pendingMoves.length === 0) return
    for (const move of pendingMoves) {
      if (move.cookie !== cookie) folders.remove(move.watcher, move.from)
    }
    pendingMoves = pendingMoves.filter((move) => move.cookie === cookie)
  }

  /**
   * Watches a folder and its subfolders. Reports entries that were created before the watch was active. Returns
   * false if the folder does not exist.
   */
  async function watchTree(
    watcher: Watcher,
    relative: BytePath,
    options: { readonly report: boolean },
  ): Promise<boolean> {
    const added = watchers.has(watcher) ? folders.add(watcher, relative) : undefined
    if (added?.isNew) await scan(added.folder, options.report)
    return added !== undefined
  }

  async function scan(folder: WatchedFolder<Watcher>, isReporting: boolean): Promise<void> {
    const { owner, relative } = folder
    const path = relative === '' ? owner.root : `${owner.root}/${relative}`
    const reader = await opendir(toPath(path), readOptions).catch(() => undefined)
    if (!reader) return
    const isFirst = folder.scanned === 'nothing'
    let all = true
    if (isReporting) reported.push(folder)
    for await (const entry of reader) {
      if (!watchers.has(owner)) return
      const inner = relative === '' ? entry.name : `${relative}/${entry.name}`
      if (isReporting && isFirst) {
        folder.reported.add(entry.name)
        report(owner, toText(inner), inotifyMask.create)
      }
      if (entry.isDirectory()) all = (await watchTree(owner, inner, { report: isReporting })) && all
    }
    folder.scanned = all ? 'all' : 'part'
  }

  function report({ listener }: Watcher, name: string, mask: number): void {
    for (const kind of changeKinds(mask)) listener.changed({ name, kind })
  }
}

const readOptions = { encoding: 'latin1', bufferSize: 256 } as const

function overflow(): Fault {
  const text =
    'The watch was closed: the kernel dropped changes, because there were too many. Start a new watch.'
  return new Fault('internal', 'watch_overflow', text)
}
