/**
 * Registry of folder watches: streams, which end with their connection, and polled watchers, which last until
 * removed.
 */
import { Fault } from '@atoll/kit/fault'
import type { Change, FolderWatcher, WatchOptions } from '../domain/watch/watch.ts'
import { createChangeQueue } from './change-queue.ts'
import type { ChangeQueue } from './change-queue.ts'

export interface WatchRequest extends WatchOptions {
  readonly includeEntry: boolean
}

export interface OpenWatch {
  readonly request: WatchRequest
  readonly queue: Pick<ChangeQueue, 'next'>
  close(): void
}

export interface Watchers {
  open(request: WatchRequest): Promise<OpenWatch>
  /** Returns the watcher ID for polling. */
  create(request: WatchRequest): Promise<string>
  /** Returns the changes since the last call. Throws `not_found`, or the error that ended the watch. */
  take(id: string): { readonly request: WatchRequest; readonly changes: readonly Change[] }
  remove(id: string): void
  close(): void
}

export function createWatchers(folders: FolderWatcher, randomName: () => string): Watchers {
  const watches = new Set<Watch>()
  const watchesById = new Map<string, Watch>()
  return {
    open,
    async create(request) {
      const watch = await open(request)
      const id = `w${randomName().slice(0, 20)}`
      watchesById.set(id, watch)
      return id
    },
    take(id) {
      const { request, queue } = find(id)
      return { request, changes: queue.drain() }
    },
    remove(id) {
      find(id).close()
      watchesById.delete(id)
    },
    close() {
      for (const watch of watches) watch.close()
      watchesById.clear()
    },
  }

  async function open(request: WatchRequest): Promise<Watch> {
    if (watches.size >= watcherLimit) throwTooMany()
    const queue = createChangeQueue(() => source?.close())
    const watch: Watch = {
      request,
      queue,
      close() {
        watches.delete(watch)
        source?.close()
        queue.close()
      },
    }
    watches.add(watch)
    let source: { close(): void } | undefined
    try {
      source = await folders.watch(request, queue)
    } catch (thrown) {
      watches.delete(watch)
      throw thrown
    }
    return watch
  }

  function find(id: string): Watch {
    return watchesById.get(id) ?? throwNotFound(id)
  }
}

interface Watch extends OpenWatch {
  readonly queue: ChangeQueue
}

/** Bounds forgotten watchers: a polled watcher lasts until it is removed. */
const watcherLimit = 256

function throwTooMany(): never {
  const text = `Watcher limit reached (${watcherLimit}). Remove watchers that are no longer needed.`
  throw new Fault('exhausted', 'too_many_watchers', text)
}

function throwNotFound(id: string): never {
  throw new Fault('not_found', 'watcher_not_found', `No watcher with ID '${id}'. Create a new one.`)
}
