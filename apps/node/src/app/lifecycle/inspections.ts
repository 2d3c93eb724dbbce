import { Fault } from '@atoll/kit/fault'
import type { KeyedQueue } from './keyed-queue.ts'

/**
 * Queue with tasks that only look at a sandbox. They have the sandbox for themselves, because an open file keeps a disk
 * mounted that a pause must flush. Any other task aborts them, so nothing waits for a look.
 */
export interface InspectionQueue extends KeyedQueue {
  inspect<T>(
    key: string,
    task: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>
}

export function withInspections(queue: KeyedQueue): InspectionQueue {
  const current = new Map<string, Set<AbortController>>()
  return {
    ...queue,
    run(key, task) {
      for (const inspection of current.get(key) ?? []) inspection.abort()
      return queue.run(key, task)
    },

    async inspect(key, task, signal) {
      const interruption = new AbortController()
      const inspections = current.get(key) ?? new Set()
      current.set(key, inspections.add(interruption))
      const ended = AbortSignal.any([interruption.signal, signal])
      try {
        return await queue.run(key, async () => {
          ended.throwIfAborted()
          return task(ended)
        })
      } catch (error) {
        if (interruption.signal.aborted) throw interrupted(error)
        throw error
      } finally {
        inspections.delete(interruption)
        if (inspections.size === 0 && current.get(key) === inspections) current.delete(key)
      }
    },
  }
}

function interrupted(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'inspection_interrupted',
    'The sandbox was being paused, copied, changed or killed at that moment; try again',
    { cause },
  )
}
