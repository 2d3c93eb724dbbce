import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Sandbox, SandboxState } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

/**
 * Tracks the slow operations of this process: pauses, resumes, copies. The record holds the state of a sandbox and its
 * owner process; this map holds what the owner is doing.
 */
export interface Transitions {
  /** Whether this process owns an operation on the sandbox or is about to. */
  isUnderway(id: string): boolean
  /** Runs `work`; `isUnderway` is true from before it begins until after it ends. */
  during<T>(id: string, work: () => Promise<T>): Promise<T>
  /** Waits until the record leaves this state and returns the record. Throws a `conflict` fault past the limit. */
  changeFrom(state: SandboxState, id: string, limit: AbortSignal): Promise<Sandbox | undefined>
  /** Waits for all operations in progress. */
  settle(): Promise<void>
}

/** Polling, because the owner may be another process and only the record shows its progress. */
const pollMs = 50

export function createTransitions({ store }: { readonly store: SandboxStore }): Transitions {
  const underway = new Map<string, Set<Promise<unknown>>>()
  return {
    isUnderway: (id) => underway.has(id),
    async during(id, work) {
      const all = underway.get(id) ?? new Set()
      underway.set(id, all)
      const begun = work()
      all.add(begun)
      try {
        return await begun
      } finally {
        all.delete(begun)
        if (all.size === 0) underway.delete(id)
      }
    },
    async changeFrom(state, id, limit) {
      for (;;) {
        const current = await store.find(id)
        if (current?.state !== state) return current
        if (limit.aborted) throw inTransition(current)
        await sleep(pollMs, undefined, { signal: limit }).catch(() => {})
      }
    },
    async settle() {
      const all = [...underway.values()].flatMap((promises) => [...promises])
      await Promise.allSettled(all)
    },
  }
}

export function inTransition({ id, state }: Sandbox): Fault {
  return new Fault(
    'conflict',
    'sandbox_in_transition',
    `Sandbox ${id} is ${state}; try again when that is finished`,
  )
}

export function beingKilled(id: string): Fault {
  return new Fault(
    'conflict',
    'sandbox_killing',
    `Sandbox ${id} is being killed and cannot be used any more`,
  )
}
