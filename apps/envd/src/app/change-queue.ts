/** Changes on their way to one reader: kept in order up to a limit, past which the reader is told that it fell behind. */
import { Fault } from '@atoll/kit/fault'
import type { Change, ChangeListener } from '../domain/watch/watch.ts'

export interface ChangeQueue extends ChangeListener {
  /** All that waits. Throws what ended the watching. */
  drain(): Change[]
  /** The next one, 'idle' after so much silence, undefined when it is closed. Throws what ended the watching. */
  next(idleMs: number): Promise<Change | 'idle' | undefined>
  close(): void
}

export function createChangeQueue(onFailure: () => void, limit = changeLimit): ChangeQueue {
  let changes: Change[] = []
  let at = 0
  let failure: Error | undefined
  let closed = false
  let arrived: (() => void) | undefined

  return {
    changed(change) {
      if (failure || closed) return
      changes.push(change)
      if (changes.length - at > limit) fail(tooSlow(limit))
      arrived?.()
    },
    failed: fail,
    drain() {
      if (failure) throw failure
      const waiting = changes.slice(at)
      changes = []
      at = 0
      return waiting
    },
    async next(idleMs) {
      if (at === changes.length && !failure && !closed) await silence(idleMs)
      if (closed) return undefined
      if (failure) throw failure
      const change = changes[at]
      if (change === undefined) return 'idle'
      at += 1
      if (at === changes.length) {
        changes = []
        at = 0
      } else if (at === limit) {
        changes = changes.slice(at)
        at = 0
      }
      return change
    },
    close() {
      closed = true
      changes = []
      at = 0
      arrived?.()
    },
  }

  function fail(cause: Error): void {
    if (failure || closed) return
    failure = cause
    changes = []
    at = 0
    onFailure()
    arrived?.()
  }

  async function silence(idleMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    arrived = resolve
    const timer = setTimeout(resolve, idleMs)
    await promise
    clearTimeout(timer)
    arrived = undefined
  }
}

const changeLimit = 10_000

function tooSlow(limit: number): Fault {
  const text = `More than ${limit} changes were waiting to be read, so the watching was ended`
  return new Fault('internal', 'watch_overflow', text)
}
