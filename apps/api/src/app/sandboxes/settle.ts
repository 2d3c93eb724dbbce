import type { Clock } from '@atoll/kit/clock'
import { wakeSeconds } from '../../domain/sandboxes/lifecycle.ts'
import type { SandboxNode } from '../../domain/node.ts'
import { isShown } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { reconcileWithNode } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { LimitsOf } from '../teams/limits.ts'

/**
 * Updates the record of a sandbox to match its node and returns the record. Call only as the owner of the sandbox or
 * when it has none. `seconds` is the run time if the sandbox turns out to be resumed. Throws when the node does not
 * answer; the reconciler retries.
 */
export type Settle = (id: string, seconds?: number) => Promise<Sandbox | undefined>

const findTimeoutMs = 10_000

export function createSettle(deps: {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly clock: Clock
  readonly limitsOf: LimitsOf
}): Settle {
  const { store, node, clock, limitsOf } = deps
  return async (id, seconds) => {
    const before = await store.find(id)
    if (!before || !isShown(before)) return before
    const onNode = await node.find(id, AbortSignal.timeout(findTimeoutMs))
    const { maxSandboxSeconds } = await limitsOf(before.teamId)
    const length = seconds ?? wakeSeconds(before.timeoutSeconds, maxSandboxSeconds)
    return store.update(id, (current) =>
      isSame(before, current)
        ? reconcileWithNode(current, onNode, { now: clock.now(), seconds: length })
        : current,
    )
  }
}

/** Whether the record is unchanged since `before`; otherwise the answer of the node may be stale. */
function isSame(before: Sandbox, now: Sandbox): boolean {
  return (
    before.state === now.state &&
    before.startedAt?.getTime() === now.startedAt?.getTime() &&
    before.endAt?.getTime() === now.endAt?.getTime()
  )
}
