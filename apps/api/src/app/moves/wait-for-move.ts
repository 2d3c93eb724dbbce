import { setTimeout as sleep } from 'node:timers/promises'
import { isMoving } from '../../domain/sandboxes/sandbox-move.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'

export interface MoveWaits {
  /** Resolves when the sandbox is not being moved, or after a limit. */
  wait(id: string): Promise<void>
}

const pollMs = 200
/** Longer than an edge holds a request. */
const limitMs = 120_000

/** All callers of one sandbox share the reads: anyone can send requests to it. */
export function createMoveWaits(store: Pick<SandboxStore, 'find'>): MoveWaits {
  const waits = new Map<string, Promise<void>>()
  const isUnderway = async (id: string): Promise<boolean> => {
    const sandbox = await store.find(id)
    return sandbox !== undefined && isMoving(sandbox)
  }
  const poll = async (id: string): Promise<void> => {
    const until = performance.now() + limitMs
    while ((await isUnderway(id)) && performance.now() < until) await sleep(pollMs)
  }
  return {
    wait(id) {
      const known = waits.get(id)
      if (known) return known
      const wait = poll(id).finally(() => waits.delete(id))
      waits.set(id, wait)
      wait.catch(() => {}) // callers that are still there get the error
      return wait
    },
  }
}
