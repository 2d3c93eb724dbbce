import { setTimeout as sleep } from 'node:timers/promises'
import { isMoving } from '../../domain/sandboxes/sandbox-move.ts'
import { isDurable, noteContent } from '../../domain/sandboxes/sandbox-pause.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Fleet } from '../nodes/fleet.ts'

/**
 * Waits until the object store has the content of a sandbox that is being moved, or until waiting makes no sense any more.
 * Returns the record of then.
 */
export type WaitForUpload = (id: string, signal: AbortSignal) => Promise<Sandbox | undefined>

const pollMs = 500
const findTimeoutMs = 5_000
/** The sandbox is paused meanwhile, so a store that is down must not take long. */
const leastLimitMs = 60_000
const slowestBytesPerMs = (16 * 2 ** 20) / 1000

export function createWaitForUpload(ports: {
  readonly store: Pick<SandboxStore, 'find' | 'update'>
  readonly fleet: Pick<Fleet, 'of' | 'reaches'>
}): WaitForUpload {
  const { store, fleet } = ports
  return async (id, signal) => {
    const began = performance.now()
    for (;;) {
      const sandbox = await store.find(id)
      if (!sandbox || !isMoving(sandbox) || sandbox.state !== 'paused') return sandbox
      const limitMs = leastLimitMs + (sandbox.keptBytes ?? 0) / slowestBytesPerMs
      const isLate = performance.now() - began > limitMs
      const isOutOfReach = !fleet.reaches(sandbox.nodeId)
      if (isDurable(sandbox) || isLate || isOutOfReach || signal.aborted) return sandbox
      if (await noteUpload(ports, sandbox)) continue
      await sleep(pollMs, undefined, { signal }).catch(() => {}) // closing
    }
  }
}

/** Asks the node, sooner than its reconciler does. Returns whether the record was changed. */
async function noteUpload(
  { store, fleet }: Parameters<typeof createWaitForUpload>[0],
  { id, nodeId, generation }: Sandbox,
): Promise<boolean> {
  const limit = AbortSignal.timeout(findTimeoutMs)
  const found = await fleet
    .of(nodeId)
    .find(id, limit)
    .catch(() => undefined)
  if (found?.state !== 'paused' || !found.isDurable) return false
  // The generation shows that the sandbox was not resumed since the node answered.
  await store.update<Sandbox>(id, (current) =>
    current.state === 'paused' && current.nodeId === nodeId && current.generation === generation
      ? noteContent(current, found)
      : current,
  )
  return true
}
