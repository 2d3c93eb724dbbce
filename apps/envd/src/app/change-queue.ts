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
  let changes: Change[] = []
  let readIndex = 0
  let failure: Error | undefined
  let closed = false
  let wakeReader: (() => void) | undefined

  return {
    changed(change) {
      if (failure || closed) return
      changes.push(change)
      if (changes.length - readIndex > limit) fail(overflowFault(limit))
      wakeReader?.()
    },
    failed: fail,
    drain() {
      if (failure) throw failure
      const waiting = changes.slice(readIndex)
      changes = []
      readIndex = 0
      return waiting
    },
    async next(idleMs) {
      if (readIndex === changes.length && !failure && !closed) await waitForChange(idleMs)
      if (closed) return undefined
      if (failure) throw failure
      const change = changes[readIndex]
      if (change === undefined) return 'idle'
      readIndex += 1
      if (readIndex === changes.length) {
        changes = []
        readIndex = 0
      } else if (readIndex === limit) {
        changes = changes.slice(readIndex)
        readIndex = 0
      }
      return change
    },
    close() {
      closed = true
      changes = []
      readIndex = 0
      wakeReader?.()
    },
  }

  function fail(cause: Error): void {
    if (failure || closed) return
    failure = cause
    changes = []
    readIndex = 0
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

const changeLimit = 10_000

function overflowFault(limit: number): Fault {
  const text = `The watch was closed: more than ${limit} changes were not read in time. Start a new watch.`
  return new Fault('internal', 'watch_overflow', text)
}
