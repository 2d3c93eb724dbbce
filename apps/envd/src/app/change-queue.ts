/** Queue of file changes for one reader. Past the limit, the queue fails and the reader gets an overflow fault. */
import { Fault } from '@atoll/kit/fault'
import type { Change, ChangeListener } from '../domain/watch/watch.ts'

export interface ChangeQueue extends ChangeListener {
  /** Returns all queued changes. Throws the error that ended the watch. */
  drain(): Change[]
  /**
   * Returns the next change, 'idle' after `idleMs` without one, or undefined once closed. Throws the error that
   * ended the watch.
   */
  next(idleMs: number): Promise<Change | 'idle' | undefined>
  close(): void
}

export function createChangeQueue(onFailure: () => void, limit = changeLimit): ChangeQueue {
  const changes = createCompactingQueue<Change>(limit)
  let failure: Error | undefined
  let closed = false
  let wakeReader: (() => void) | undefined

  return {
    changed(change) {
      if (failure || closed) return
      changes.push(change)
      if (changes.size() > limit) fail(overflowFault(limit))
      wakeReader?.()
    },
    failed: fail,
    drain() {
      if (failure) throw failure
      return changes.drain()
    },
    async next(idleMs) {
      if (changes.size() === 0 && !failure && !closed) await waitForChange(idleMs)
      if (closed) return undefined
      if (failure) throw failure
      return changes.shift() ?? 'idle'
    },
    close() {
      closed = true
      changes.drain()
      wakeReader?.()
    },
  }

  function fail(cause: Error): void {
    if (failure || closed) return
    failure = cause
    changes.drain()
    onFailure()
    wakeReader?.()
  }

  async function waitForChange(idleMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    wakeReader = resolve
    const timer = setTimeout(resolve, idleMs)
    await promise
    clearTimeout(timer)
    wakeReader = undefined
  }
}

/** Queue with a cheap shift: removed items are only skipped, and freed after every `limit` items. */
function createCompactingQueue<T>(limit: number) {
  let items: T[] = []
  let readIndex = 0
  return {
    size: () => items.length - readIndex,
    push: (item: T) => void items.push(item),
    shift(): T | undefined {
      const item = items[readIndex]
      if (item === undefined) return undefined
      readIndex += 1
      if (readIndex === items.length || readIndex === limit) {
        items = items.slice(readIndex)
        readIndex = 0
      }
      return item
    },
    drain(): T[] {
      const rest = items.slice(readIndex)
      items = []
      readIndex = 0
      return rest
    },
  }
}

const changeLimit = 10_000

function overflowFault(limit: number): Fault {
  const text = `The watch was closed: more than ${limit} changes were not read in time. Start a new watch.`
  return new Fault('internal', 'watch_overflow', text)
}
