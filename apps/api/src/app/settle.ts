import type { Clock } from '@atoll/kit/clock'
import { wakeSeconds } from '../domain/lifecycle.ts'
import type { SandboxNode } from '../domain/node.ts'
import { isShown } from '../domain/sandbox.ts'
import type { Sandbox } from '../domain/sandbox.ts'
import { agreeWithNode } from '../domain/sandbox-pause.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { LimitsOf } from './limits.ts'

/**
 * Makes the record of a sandbox say what its node says, and gives the record. To be called where nobody is at the
 * sandbox, or by who is. `seconds` is how long it may run if it turns out to have been resumed. Fails when the node does
 * not answer: then the reconciler comes back to it.
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
        ? agreeWithNode(current, onNode, { now: clock.now(), seconds: length })
        : current,
    )
  }
}

/** Whether nothing has happened to it since: what the node said may be older than the record otherwise. */
function isSame(before: Sandbox, now: Sandbox): boolean {
  return (
    before.state === now.state &&
    before.startedAt?.getTime() === now.startedAt?.getTime() &&
    before.endAt?.getTime() === now.endAt?.getTime()
  )
}
