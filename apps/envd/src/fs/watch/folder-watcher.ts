/**
 * Watches folders with inotify: one instance for all watchers. Threats: whoever works in the sandbox decides how many
 * changes there are and how folders are named, moved and removed meanwhile. All numbers are bounded, and when the kernel
 * had to drop changes every watcher is told, since nobody knows whose they were.
 */
import { opendir, stat, statfs } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
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
import { watchedPlaces } from './watched-places.ts'
import type { Place, PlaceOwner } from './watched-places.ts'

interface Watcher extends PlaceOwner<Watcher> {
  readonly recursive: boolean
  readonly listener: ChangeListener
  readonly places: Map<BytePath, Place<Watcher>>
}

export function inotifyFolderWatcher(libc: () => Libc): FolderWatcher {
  let instance: Instance | undefined
  return {
    async watch(options, listener) {
      await checkWatchable(options).catch((thrown: unknown) => {
        throw fileFault(thrown, options.path)
      })
      const { path, recursive } = options
      const watcher: Watcher = { root: toBytes(path), recursive, listener, places: new Map() }
      instance ??= startInstance(libc(), () => (instance = undefined))
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
    refuse(`'${path}' is on a network mount, where changes by others are not seen`)
  }
}

function refuse(message: string): never {
  throw new Fault('invalid', 'not_watchable', message)
}

interface Instance {
  join(watcher: Watcher): { start(): Promise<void>; close(): void }
}

/** Lives as long as anybody watches. */
function startInstance(libc: Libc, onEnd: () => void): Instance {
  const inotify = openInotify(libc, () => void pump())
  const places = watchedPlaces<Watcher>(inotify)
  const watchers = new Set<Watcher>()
  const told: Place<Watcher>[] = []
  /** Folders that left their place and have not come to another yet. */
  let moving: { readonly cookie: number; readonly watcher: Watcher; readonly from: BytePath }[] = []
  let pumping = false
  let wanted = false

  return {
    join(watcher) {
      watchers.add(watcher)
      return { start: () => begin(watcher), close: () => leave(watcher) }
    },
  }

  async function begin(watcher: Watcher): Promise<void> {
    if (watcher.recursive) await adopt(watcher, '', { tell: false })
    else places.add(watcher, '')
    if (watcher.places.has('')) return
    throw new Fault('not_found', 'file_not_found', `'${toText(watcher.root)}' is gone`)
  }

  function leave(watcher: Watcher): void {
    if (!watchers.delete(watcher)) return
    places.remove(watcher, '')
    if (watchers.size > 0) return
    inotify.close()
    onEnd()
  }

  function fail(watcher: Watcher, cause: unknown): void {
    if (!watchers.has(watcher)) return
    leave(watcher)
    watcher.listener.failed(cause instanceof Error ? cause : new Error(String(cause)))
  }

  /** Takes in events one after the other until there are none left. */
  async function pump(): Promise<void> {
    wanted = true
    if (pumping) return
    pumping = true
    try {
      while (wanted) {
        wanted = false
        await takeAll()
        settleMoves(0)
        for (const place of told.splice(0)) place.told.clear()
      }
    } catch (cause) {
      for (const watcher of [...watchers]) fail(watcher, cause)
    } finally {
      pumping = false
    }
  }

  async function takeAll(): Promise<void> {
    for (let events = inotify.read(); events.length > 0; events = inotify.read()) {
      for (const event of events) await take(event)
      await turn()
    }
  }

  async function take(event: InotifyEvent): Promise<void> {
    settleMoves(event.cookie)
    if (event.mask & inotifyMask.overflow) {
      for (const watcher of [...watchers]) fail(watcher, overflow())
      return
    }
    for (const place of places.of(event.watch)) {
      try {
        if (event.name === '') takeSelf(place, event.mask)
        else await takeInner(place, event)
      } catch (cause) {
        fail(place.owner, cause)
      }
    }
    if (event.mask & (inotifyMask.ignored | inotifyMask.unmount)) places.lost(event.watch)
  }

  /** Of folders below the one asked for, the folder above them tells. */
  function takeSelf({ owner, relative }: Place<Watcher>, mask: number): void {
    if (relative === '') tell(owner, '.', mask)
  }

  async function takeInner(place: Place<Watcher>, event: InotifyEvent): Promise<void> {
    const { owner } = place
    const { name, mask, cookie } = event
    const inner = place.relative === '' ? name : `${place.relative}/${name}`
    const isArrival = (mask & (inotifyMask.create | inotifyMask.movedTo)) !== 0
    if (isArrival && place.told.delete(name)) return
    tell(owner, toText(inner), mask)
    if (!owner.recursive || !(mask & inotifyMask.isFolder)) return
    if (mask & inotifyMask.movedFrom) moving.push({ cookie, watcher: owner, from: inner })
    if (!isArrival) return
    const left = moving.find((move) => move.cookie === cookie && move.watcher === owner)
    moving = moving.filter((move) => move !== left)
    const renamed = left ? places.rename(owner, left.from, inner) : []
    // A new folder can have been moved before we came to look into it, or while we did.
    for (const late of renamed) if (late.seen !== 'all') await look(late, true)
    if (renamed.length > 0) return
    await adopt(owner, inner, { tell: left !== undefined || (mask & inotifyMask.create) !== 0 })
  }

  /** The two halves of a rename follow each other: what comes after another event has left the tree. */
  function settleMoves(cookie: number): void {
    if (moving.length === 0) return
    for (const move of moving) {
      if (move.cookie !== cookie) places.remove(move.watcher, move.from)
    }
    moving = moving.filter((move) => move.cookie === cookie)
  }

  /**
   * Watches a folder and those in it. Things that were put into a new folder before it was watched are told too. False
   * when it is not there.
   */
  async function adopt(
    watcher: Watcher,
    relative: BytePath,
    options: { readonly tell: boolean },
  ): Promise<boolean> {
    const added = watchers.has(watcher) ? places.add(watcher, relative) : undefined
    if (added?.isNew) await look(added.place, options.tell)
    return added !== undefined
  }

  async function look(place: Place<Watcher>, isTelling: boolean): Promise<void> {
    const { owner, relative } = place
    const path = relative === '' ? owner.root : `${owner.root}/${relative}`
    const reader = await opendir(toPath(path), readOptions).catch(() => undefined)
    if (!reader) return
    const isFirst = place.seen === 'nothing'
    let all = true
    if (isTelling) told.push(place)
    for await (const entry of reader) {
      if (!watchers.has(owner)) return
      const inner = relative === '' ? entry.name : `${relative}/${entry.name}`
      if (isTelling && isFirst) {
        place.told.add(entry.name)
        tell(owner, toText(inner), inotifyMask.create)
      }
      if (entry.isDirectory()) all = (await adopt(owner, inner, { tell: isTelling })) && all
    }
    place.seen = all ? 'all' : 'part'
  }

  function tell({ listener }: Watcher, name: string, mask: number): void {
    for (const kind of changeKinds(mask)) listener.changed({ name, kind })
  }
}

const readOptions = { encoding: 'latin1', bufferSize: 256 } as const

function overflow(): Fault {
  const text = 'There were more changes than the system keeps, so some were lost: watch anew'
  return new Fault('internal', 'watch_overflow', text)
}
