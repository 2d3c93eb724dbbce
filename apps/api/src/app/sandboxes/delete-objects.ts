import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Fleet } from '../nodes/fleet.ts'

const intervalMs = 10_000
const nodeTimeoutMs = 30_000
const batch = 100

/**
 * One pass: has the objects of ended sandboxes deleted. A kill does that on the node of the sandbox. A sandbox that died by
 * itself, or was lost with its node, leaves them to any node with an object store. The node writes the request down before
 * it answers, and the record keeps its note until then, so a crash of either repeats the request at most.
 */
export async function deleteObjectsOfEnded(
  ports: {
    readonly store: Pick<SandboxStore, 'listEndedWithObjects' | 'update'>
    readonly fleet: Pick<Fleet, 'ids' | 'member'>
    readonly random?: () => number
  },
  signal: AbortSignal,
): Promise<number> {
  const { store, fleet, random = Math.random } = ports
  const members = fleet.ids().map((id) => fleet.member(id))
  const able = members.filter((member) => member.facts()?.hasObjects)
  // By chance: a node that fails must not keep the others from the work.
  const member = able[Math.floor(random() * able.length)]
  if (!member) return intervalMs
  const ended = await store.listEndedWithObjects(batch)
  if (ended.length === 0) return intervalMs
  const limit = AbortSignal.any([signal, AbortSignal.timeout(nodeTimeoutMs)])
  await member.sandboxes.deleteObjects(ended, limit)
  for (const { id } of ended) {
    await store.update(id, (current) => ({ ...current, storedGeneration: undefined }))
  }
  return ended.length === batch ? 0 : intervalMs
}
