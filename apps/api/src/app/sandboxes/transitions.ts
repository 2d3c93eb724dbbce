import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Sandbox, SandboxState } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

/**
 * Tracks the slow operations of this process: pauses, resumes, copies. The record holds the state of a sandbox and its
 * owner process; this map holds what the owner is doing.
 */
export interface Transitions {
  /** Whether this process owns an operation on the sandbox or is about to. Operations that wait for others do not count. */
  isUnderway(id: string): boolean
  /** Runs `work`; `isUnderway` is true from before it begins until after it ends, except while it waits. */
  during<T>(id: string, work: (changeFrom: ChangeFrom) => Promise<T>): Promise<T>
  /** Waits for all operations in progress. */
  settle(): Promise<void>
}

/**
 * Waits until the record leaves this state and returns the record. Throws a `conflict` fault past the limit. The operation that
 * waits does not count as under way: the owner may have left the record to the reconciler, which must not wait for the waiting.
 */
export type ChangeFrom = (state: SandboxState, limit: AbortSignal) => Promise<Sandbox | undefined>

/** Polling, because the owner may be another process and only the record shows its progress. */
const pollMs = 50

interface Operation {
  isWaiting: boolean
  done: Promise<unknown>
}

export function createTransitions({ store }: { readonly store: SandboxStore }): Transitions {
  const underway = new Map<string, Set<Operation>>()

  const changeFrom = async (
    state: SandboxState,
    id: string,
    limit: AbortSignal,
  ): Promise<Sandbox | undefined> => {
    for (;;) {
      const current = await store.find(id)
      if (current?.state !== state) return current
      if (limit.aborted) throw inTransition(current)
      await sleep(pollMs, undefined, { signal: limit }).catch(() => {})
    }
  }
  return {
    isUnderway: (id) => [...(underway.get(id) ?? [])].some(({ isWaiting }) => !isWaiting),
    async during(id, work) {
      const all = underway.get(id) ?? new Set()
      underway.set(id, all)
      const operation: Operation = { isWaiting: false, done: Promise.resolve() }
      all.add(operation)
      try {
        const begun = work(async (state, limit) => {
          operation.isWaiting = true
          try {
            return await changeFrom(state, id, limit)
          } finally {
            operation.isWaiting = false
          }
        })
        operation.done = begun
        return await begun
      } finally {
        all.delete(operation)
        if (all.size === 0) underway.delete(id)
      }
    },
    async settle() {
      const all = [...underway.values()].flatMap((operations) => [...operations])
      await Promise.allSettled(all.map(({ done }) => done))
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
