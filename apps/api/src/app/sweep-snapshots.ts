import type { Clock } from '@atoll/kit/clock'
import type { LeaseStore } from '../domain/lease.ts'
import type { SandboxNode } from '../domain/node.ts'
import type { SnapshotStore } from '../domain/snapshot.ts'
import type { Copying } from './copy-sandbox.ts'

const intervalMs = 10_000
const nodeTimeoutMs = 30_000

/** One pass: removes copies of sandboxes that nobody has in hands and nothing refers to, from the node and the records. */
export async function sweepSnapshots(
  ports: {
    readonly snapshots: SnapshotStore
    readonly node: Pick<SandboxNode, 'listSnapshots'>
    readonly copying: Copying
    readonly leases: LeaseStore
    readonly clock: Clock
    readonly processId: string
  },
  signal: AbortSignal,
): Promise<number> {
  const { snapshots, node, copying, leases, clock, processId } = ports
  // The node first: a copy has its record before the node has it, and until the node does not have it any more.
  const onNode = await node.listSnapshots(
    AbortSignal.any([signal, AbortSignal.timeout(nodeTimeoutMs)]),
  )
  const known = await snapshots.known(onNode)
  for (const id of onNode) if (!known.has(id)) await copying.discard(id)

  // Records before leases: a process has its lease before it copies anything.
  const loose = await snapshots.listLoose()
  const live = new Set((await leases.listLive(clock.now())).map((holder) => holder.processId))
  for (const { id, holder } of loose) {
    const isHeld = holder === processId ? copying.isInUse(id) : holder && live.has(holder)
    if (isHeld || copying.isInUse(id)) continue
    // Asked again: whoever had it may have published it since the records were read, and let go of it then.
    const isLoose = (await snapshots.listLoose()).some((one) => one.id === id)
    if (isLoose) await copying.discard(id)
  }
  return intervalMs
}
