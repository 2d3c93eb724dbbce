import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { SandboxNode } from '../domain/node.ts'
import { absent, isRunning } from '../domain/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../domain/sandbox.ts'
import { beginPause, finishPause } from '../domain/sandbox-pause.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { Settle } from './settle.ts'
import { inTransition } from './transitions.ts'
import type { Transitions } from './transitions.ts'

export interface Pausing {
  /** Returns once it is paused. Callers that come while it is being paused share the outcome. */
  pause(teamId: string, id: string, keepMemory: boolean): Promise<void>
  /** Returns once it is being paused; undefined when it does not run, or `wanted` does not hold. */
  pauseIf(
    id: string,
    keepMemory: boolean,
    wanted: (current: RunningSandbox) => boolean,
  ): Promise<{ readonly done: Promise<void> } | undefined>
  /** Whether the node keeps memory. Fails when it does not answer. */
  keepsMemory(): Promise<boolean>
}

interface PausePorts {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly clock: Clock
  readonly transitions: Transitions
  readonly settle: Settle
  readonly processId: string
}

/** Writing gigabytes of memory takes a while. */
const pauseLimitMs = 300_000
const describeTimeoutMs = 5_000

export function createPausing(ports: PausePorts): Pausing {
  const { store, node, transitions, processId } = ports
  const underway = new Map<string, Promise<void>>()

  const carryOut = (id: string, keepMemory: boolean): Promise<void> => {
    const begun = pauseOnNode(ports, id, keepMemory).finally(() => underway.delete(id))
    underway.set(id, begun)
    return begun
  }
  const keepsMemory = async (): Promise<boolean> => {
    const facts = await node.describe(AbortSignal.timeout(describeTimeoutMs)).catch(unanswered)
    return facts.keepsMemory
  }

  return {
    keepsMemory,
    async pause(teamId, id, keepMemory) {
      const isPossible = !keepMemory || (await keepsMemory())
      await transitions.during(id, async () => {
        let isOurs = false
        const current = await store.update(id, (found) => {
          checkPausable(found, teamId)
          if (!isRunning(found)) return found
          if (!isPossible) throw memoryNotKept()
          isOurs = true
          return beginPause(found, processId)
        })
        if (!current) throw absent(id)
        if (isOurs) return carryOut(id, keepMemory)
        return underway.get(id) ?? outcomeElsewhere(ports, id)
      })
    },
    async pauseIf(id, keepMemory, wanted) {
      const claim = Promise.withResolvers<boolean>()
      const done = transitions.during(id, async () => {
        let isOurs = false
        await store.update(id, (found) => {
          if (!isRunning(found) || !wanted(found)) return found
          isOurs = true
          return beginPause(found, processId)
        })
        claim.resolve(isOurs)
        if (isOurs) await carryOut(id, keepMemory)
      })
      done.catch(claim.reject)
      return (await claim.promise) ? { done } : undefined
    },
  }
}

/** What runs can be paused, and what is being paused be waited for. */
function checkPausable(sandbox: Sandbox, teamId: string): void {
  const { id, state } = sandbox
  if (sandbox.teamId !== teamId) throw absent(id)
  if (state === 'running' || state === 'pausing') return
  if (state === 'paused') {
    throw new Fault('conflict', 'sandbox_paused', `Sandbox ${id} is paused already`)
  }
  if (state === 'resuming' || state === 'snapshotting') throw inTransition(sandbox)
  throw absent(id, sandbox)
}

async function pauseOnNode(ports: PausePorts, id: string, keepMemory: boolean): Promise<void> {
  const { store, node, clock, settle } = ports
  try {
    await node.pause(id, keepMemory, AbortSignal.timeout(pauseLimitMs))
  } catch (error) {
    const after = await settle(id).catch(() => {
      throw error // the reconciler finds out what became of it
    })
    if (isGone(after)) throw absent(id, after)
    if (after?.state === 'paused') return
    throw error
  }
  const after = await store.update(id, (current) =>
    current.state === 'pausing'
      ? finishPause(current, clock.now(), keepMemory ? 'memory' : 'files')
      : current,
  )
  if (isGone(after)) throw absent(id, after)
}

async function outcomeElsewhere({ transitions }: PausePorts, id: string): Promise<void> {
  const limit = AbortSignal.timeout(pauseLimitMs)
  const after = await transitions.changeFrom('pausing', id, limit)
  if (isGone(after)) throw absent(id, after)
  if (after && isRunning(after)) {
    throw new Fault('internal', 'sandbox_pause_failed', 'The sandbox could not be paused')
  }
}

function isGone(sandbox: Sandbox | undefined): boolean {
  return sandbox === undefined || sandbox.state === 'killing' || sandbox.state === 'ended'
}

function memoryNotKept(): Fault {
  return new Fault(
    'invalid',
    'memory_not_kept',
    'The runtime of this node keeps files alone over a pause: send memory: false to pause without memory',
  )
}

function unanswered(cause: unknown): never {
  throw new Fault('unavailable', 'node_unavailable', 'The node does not answer; try again later', {
    cause,
  })
}
