import type { Clock } from '@atoll/kit/clock'
import { wakeSeconds } from '../../domain/sandboxes/lifecycle.ts'
import { isShown } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { reconcileWithNode } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { LimitsOf } from '../teams/limits.ts'

/**
 * Updates the record of a sandbox to match its node and returns the record. Call only as the holder of the record, or
 * when it has no holder. `seconds` is the run time that a client has asked for, if the sandbox turns out to be resumed. Throws
 * when the node does not answer; the reconciler retries.
 */
export type Settle = (id: string, seconds?: number) => Promise<Sandbox | undefined>

const findTimeoutMs = 10_000

export function createSettle(deps: {
  readonly store: SandboxStore
  readonly fleet: Fleet
  readonly clock: Clock
  readonly limitsOf: LimitsOf
}): Settle {
  const { store, fleet, clock, limitsOf } = deps
  return async (id, seconds) => {
    const before = await store.find(id)
    if (!before || !isShown(before)) return before
    const onNode = await fleet.of(before.nodeId).find(id, AbortSignal.timeout(findTimeoutMs))
    const { maxSandboxSeconds } = await limitsOf(before.teamId)
    const length = seconds ?? wakeSeconds(before.timeoutSeconds, maxSandboxSeconds)
    const begin = { now: clock.now(), seconds: length, isRequested: seconds !== undefined }
    return store.update(id, (current) =>
      isSame(before, current) ? reconcileWithNode(current, onNode, begin) : current,
    )
  }
}

/** Whether the record is unchanged since `before`; otherwise the answer of the node may be stale. */
function isSame(before: Sandbox, now: Sandbox): boolean {
  return (
    before.state === now.state &&
    before.nodeId === now.nodeId &&
    before.generation === now.generation &&
    before.startedAt?.getTime() === now.startedAt?.getTime() &&
    before.endAt?.getTime() === now.endAt?.getTime()
  )
}
