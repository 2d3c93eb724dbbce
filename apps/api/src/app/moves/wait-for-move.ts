import { setTimeout as sleep } from 'node:timers/promises'
import { isMoving } from '../../domain/sandboxes/sandbox-move.ts'
import { isDurable } from '../../domain/sandboxes/sandbox-pause.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Placing } from '../nodes/placing.ts'

export interface MoveWaits {
  /** Resolves when the sandbox is not being moved, when its move cannot continue now, or after a limit. */
  wait(id: string): Promise<void>
}

interface WaitPorts {
  readonly store: Pick<SandboxStore, 'find'>
  readonly placing: Pick<Placing, 'conditionOf'>
}

const pollMs = 200
/** Longer than an edge holds a request. */
const limitMs = 120_000
/** Covers the second attempt, and leaves an edge time to wake the sandbox if that fails too. */
const limitAfterFailureMs = 10_000

/** All callers of one sandbox share the reads: anyone can send requests to it. */
export function createMoveWaits({ store, placing }: WaitPorts): MoveWaits {
  const waits = new Map<string, Promise<void>>()
  const limitOf = (sandbox: Sandbox | undefined): number => {
    if (!sandbox || !isMoving(sandbox)) return 0
    if (!isDurable(sandbox) && placing.conditionOf(sandbox.nodeId) === 'gone') return 0
    return hasFailed(sandbox) ? limitAfterFailureMs : limitMs
  }
  const poll = async (id: string): Promise<void> => {
    const began = performance.now()
    while (performance.now() - began < limitOf(await store.find(id))) await sleep(pollMs)
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

/** Whether a resume of the kept content was begun before: each one raises the generation. */
function hasFailed({ state, generation, keptGeneration = generation }: Sandbox): boolean {
  return state === 'paused' && generation > keptGeneration
}
