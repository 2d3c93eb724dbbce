import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Sandbox, SandboxState } from '../domain/sandbox.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'

/**
 * What this process does to sandboxes that takes a while: pauses, resumes, copies. The record says which state a sandbox
 * is in and which process is at it; here is what that process itself knows of it.
 */
export interface Transitions {
  /** Whether this process is at it, or about to be. */
  isUnderway(id: string): boolean
  /** `isUnderway` holds from before `work` begins until after it ends. */
  during<T>(id: string, work: () => Promise<T>): Promise<T>
  /** Waits until its record has left this state, and gives what it is then. Throws a `conflict` fault past the limit. */
  changeFrom(state: SandboxState, id: string, limit: AbortSignal): Promise<Sandbox | undefined>
  /** Waits for all that is under way. */
  settle(): Promise<void>
}

/** Another process may be at it: then only its record tells. */
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
    `Sandbox ${id} is ${state} at this moment; try again when that is done`,
  )
}

export function beingKilled(id: string): Fault {
  return new Fault('conflict', 'sandbox_killing', `Sandbox ${id} is being killed`)
}
