import { Fault } from '@atoll/kit/fault'
import type { KeyedQueue } from './keyed-queue.ts'

/**
 * Queue with tasks that only look at a sandbox. They have the sandbox for themselves, because an open file keeps a disk
 * mounted that a pause must flush. Any other task aborts them, so nothing waits for a look.
 * A waiting inspection fails as soon as it is aborted.
 */
export interface InspectionQueue extends KeyedQueue {
  inspect<T>(
    key: string,
    task: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>
}

/** Inspections of one sandbox: the current one and four waiting ones. */
const maxPerSandbox = 5

export function withInspections(queue: KeyedQueue): InspectionQueue {
  const current = new Map<string, Set<AbortController>>()
  return {
    ...queue,
    run(key, task) {
      for (const inspection of current.get(key) ?? []) inspection.abort()
      return queue.run(key, task)
    },

    async inspect(key, task, signal) {
      signal.throwIfAborted()
      const inspections = current.get(key) ?? new Set()
      if (inspections.size >= maxPerSandbox) throw busy()
      const interruption = new AbortController()
      current.set(key, inspections.add(interruption))
      const ended = AbortSignal.any([interruption.signal, signal])
      const left = Promise.withResolvers<never>()
      const leave = () => left.reject(ended.reason)
      ended.addEventListener('abort', leave)
      const done = queue.run(key, async () => {
        ended.removeEventListener('abort', leave)
        ended.throwIfAborted()
        return task(ended)
      })
      const forget = () => {
        inspections.delete(interruption)
        if (inspections.size === 0 && current.get(key) === inspections) current.delete(key)
      }
      try {
        // An aborted inspection counts until its turn comes, because the queue holds its entry until then.
        return await Promise.race([done.finally(forget), left.promise])
      } catch (error) {
        if (interruption.signal.aborted) throw interrupted(error)
        throw error
      }
    },
  }
}

function busy(): Fault {
  return new Fault(
    'unavailable',
    'inspections_busy',
    `${maxPerSandbox} inspections of this sandbox run or wait already; try again when one has ended`,
  )
}

function interrupted(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'inspection_interrupted',
    'The sandbox was being paused, copied, changed or killed at that moment; try again',
    { cause },
  )
}
