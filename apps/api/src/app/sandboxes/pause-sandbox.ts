import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { absent, isRunning } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { TemplateBytes } from '../builds/template-bytes.ts'
import { mayKeep, tooMuchKept } from '../../domain/teams/limits.ts'
import { cancelMove, isMoveDue, isMoving } from '../../domain/sandboxes/sandbox-move.ts'
import { beginMove, beginPause, finishPause } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { LimitsOf } from '../teams/limits.ts'
import type { Settle } from './settle.ts'
import { inTransition } from './transitions.ts'
import type { ChangeFrom, Transitions } from './transitions.ts'
import { bytesOf } from '../snapshots/estimate-size.ts'
import type { EstimateSize } from '../snapshots/estimate-size.ts'

export interface Pausing {
  /** Returns once the sandbox is paused. Concurrent callers share one outcome. */
  pause(teamId: string, id: string, keepMemory: boolean): Promise<void>
  /**
   * Returns once the record says `pausing`; undefined when the sandbox is not running or `wanted` is false. Over the
   * kept-disk quota, keeps the files but not the memory.
   */
  pauseIf(
    id: string,
    keepMemory: boolean,
    wanted: (current: RunningSandbox) => boolean,
  ): Promise<BegunPause | undefined>
  /**
   * Pauses with memory, to resume on another node. The disk quota does not count: the sandbox runs again soon. Returns false
   * when the sandbox does not run on this node any more, or another api has tried lately.
   */
  pauseToMove(id: string, nodeId: string): Promise<boolean>
  /** Whether the node can pause with memory. Throws an `unavailable` fault when the node does not answer. */
  keepsMemory(nodeId: string): Promise<boolean>
}

export interface BegunPause {
  readonly keepsMemory: boolean
  readonly done: Promise<void>
}

interface PausePorts {
  readonly store: SandboxStore
  readonly fleet: Fleet
  readonly clock: Clock
  readonly transitions: Transitions
  readonly settle: Settle
  readonly limitsOf: LimitsOf
  readonly estimateSize: EstimateSize
  readonly templateBytes: TemplateBytes
  readonly processId: string
}

/** Writing gigabytes of memory to disk can take minutes. */
const pauseLimitMs = 300_000
const describeTimeoutMs = 5_000

export function createPausing(ports: PausePorts): Pausing {
  const { store, transitions, processId } = ports
  const underway = new Map<string, Promise<void>>()

  const pauseClaimed = (claimed: Sandbox, keepMemory: boolean): Promise<void> => {
    const { id } = claimed
    const begun = pauseOnNode(ports, claimed, keepMemory).finally(() => underway.delete(id))
    underway.set(id, begun)
    return begun
  }

  return {
    keepsMemory: (nodeId) => keepsMemory(ports, nodeId),
    async pause(teamId, id, keepMemory) {
      const sandbox = await store.find(id)
      if (sandbox?.teamId !== teamId) throw absent(id)
      const isPossible = !keepMemory || (await keepsMemory(ports, sandbox.nodeId))
      await transitions.during(id, async (changeFrom) => {
        const [limits, estimate, templates] = await readDiskQuota(ports, sandbox)
        const bytes = bytesOf(estimate, keepMemory)
        let isOurs = false
        const current = await store.updateWithDiskUsage(id, (found, kept) => {
          if (found.teamId === teamId && isPausedByMove(found)) return cancelMove(found)
          checkPausable(found, teamId)
          if (!isRunning(found)) return found
          if (!isPossible) throw memoryNotKept()
          const used = kept + templates
          if (!mayKeep(limits, used, bytes)) throw tooMuchKept(limits, used)
          isOurs = true
          return beginPause(found, processId, bytes)
        })
        if (!current) throw absent(id)
        if (isOurs) return pauseClaimed(current, keepMemory)
        return underway.get(id) ?? outcomeElsewhere(id, changeFrom)
      })
    },
    async pauseIf(id, keepMemory, wanted) {
      const claim = Promise.withResolvers<{ readonly keepsMemory: boolean } | undefined>()
      const done = transitions.during(id, async () => {
        const sandbox = await store.find(id)
        if (!sandbox) return claim.resolve(undefined)
        const [limits, estimate, templates] = await readDiskQuota(ports, sandbox)
        let claimed: { readonly keepsMemory: boolean } | undefined
        const current = await store.updateWithDiskUsage(id, (found, kept) => {
          if (!isRunning(found) || !wanted(found)) return found
          const fits = mayKeep(limits, kept + templates, bytesOf(estimate, true))
          claimed = { keepsMemory: keepMemory && fits }
          return beginPause(found, processId, bytesOf(estimate, claimed.keepsMemory))
        })
        claim.resolve(claimed)
        if (claimed && current) await pauseClaimed(current, claimed.keepsMemory)
      })
      done.catch(claim.reject)
      const claimed = await claim.promise
      return claimed && { ...claimed, done }
    },
    pauseToMove: (id, nodeId) => pauseToMove(ports, { id, nodeId }, pauseClaimed),
  }
}

function pauseToMove(
  { store, transitions, estimateSize, processId, clock }: PausePorts,
  { id, nodeId }: { readonly id: string; readonly nodeId: string },
  pauseClaimed: (claimed: Sandbox, keepMemory: boolean) => Promise<void>,
): Promise<boolean> {
  return transitions.during(id, async () => {
    const keptBytes = bytesOf(await estimateSize({ id, nodeId }), true)
    let isOurs = false
    const current = await store.update<Sandbox>(id, (found) => {
      const now = clock.now()
      if (!isRunning(found) || found.nodeId !== nodeId || !isMoveDue(found, now)) return found
      isOurs = true
      return beginMove(found, { holder: processId, keptBytes, now })
    })
    if (isOurs && current) await pauseClaimed(current, true)
    return isOurs
  })
}

/** A client that pauses such a sandbox wants it to stay paused. */
function isPausedByMove(sandbox: Sandbox): boolean {
  return isMoving(sandbox) && sandbox.state !== 'resuming'
}

async function keepsMemory({ fleet }: PausePorts, nodeId: string): Promise<boolean> {
  const limit = AbortSignal.timeout(describeTimeoutMs)
  return (await fleet.of(nodeId).describe(limit).catch(unanswered)).keepsMemory
}

function readDiskQuota({ limitsOf, estimateSize, templateBytes }: PausePorts, sandbox: Sandbox) {
  const { teamId } = sandbox
  return Promise.all([limitsOf(teamId), estimateSize(sandbox), templateBytes(teamId)])
}

/** Accepts sandboxes that are running (to pause) or pausing (to wait for); throws a fault for all others. */
function checkPausable(sandbox: Sandbox, teamId: string): void {
  const { id, state } = sandbox
  if (sandbox.teamId !== teamId) throw absent(id)
  if (state === 'running' || state === 'pausing') return
  if (state === 'paused') {
    throw new Fault('conflict', 'sandbox_paused', `Sandbox ${id} is already paused`)
  }
  if (state === 'resuming' || state === 'snapshotting') throw inTransition(sandbox)
  throw absent(id, sandbox)
}

async function pauseOnNode(
  ports: PausePorts,
  sandbox: Sandbox,
  keepMemory: boolean,
): Promise<void> {
  const { store, fleet, clock, settle } = ports
  const { id, nodeId } = sandbox
  let sizeBytes: number
  let keptId: string | undefined
  try {
    const limit = AbortSignal.timeout(pauseLimitMs)
    ;({ sizeBytes, keptId } = await fleet.of(nodeId).pause(sandbox, keepMemory, limit))
  } catch (error) {
    const after = await settle(id).catch(() => {
      throw error // the reconciler settles it later
    })
    if (isGone(after)) throw absent(id, after)
    if (after?.state === 'paused') return
    throw error
  }
  const after = await store.update(id, (current) => {
    if (current.state !== 'pausing') return current
    const paused = {
      ...finishPause(current, clock.now(), keepMemory ? 'memory' : 'files'),
      keptId,
    }
    return sizeBytes > 0 ? { ...paused, keptBytes: sizeBytes } : paused
  })
  if (isGone(after)) throw absent(id, after)
}

async function outcomeElsewhere(id: string, changeFrom: ChangeFrom): Promise<void> {
  const after = await changeFrom('pausing', AbortSignal.timeout(pauseLimitMs))
  if (isGone(after)) throw absent(id, after)
  if (after && isRunning(after)) {
    throw new Fault(
      'internal',
      'sandbox_pause_failed',
      'The node failed to pause the sandbox; the server log has the reason',
    )
  }
}

function isGone(sandbox: Sandbox | undefined): boolean {
  return sandbox === undefined || sandbox.state === 'killing' || sandbox.state === 'ended'
}

function memoryNotKept(): Fault {
  return new Fault(
    'invalid',
    'memory_not_kept',
    'The runtime of this node can keep only files during a pause: send `memory: false` to pause without memory',
  )
}

function unanswered(cause: unknown): never {
  throw new Fault('unavailable', 'node_unavailable', 'The node does not answer; try again later', {
    cause,
  })
}
