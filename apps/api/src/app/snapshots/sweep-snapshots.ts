import type { Clock } from '@atoll/kit/clock'
import { notUploaded } from '../../domain/files-on-node.ts'
import type { IssuedFiles } from '../../domain/issued-files.ts'
import type { LeaseStore } from '../../domain/lease.ts'
import type { SandboxNode } from '../../domain/node.ts'
import type { SnapshotStore } from '../../domain/snapshot.ts'
import type { Copying } from './copy-sandbox.ts'

const intervalMs = 10_000
const nodeTimeoutMs = 30_000

interface SweepPorts {
  readonly snapshots: SnapshotStore
  readonly issuedFiles: Pick<IssuedFiles, 'among'>
  readonly onUnknown: (id: string) => void
  readonly node: {
    readonly id: string
    readonly hasObjects: boolean
    readonly sandboxes: Pick<SandboxNode, 'listSnapshots'>
  }
  /** Whether this process sweeps the node. If not, it removes only what it has made itself. */
  readonly isMine: boolean
  readonly copying: Copying
  readonly leases: LeaseStore
  readonly clock: Clock
  readonly processId: string
}

/**
 * One pass: removes unused and deleted sandbox copies of one node from the node and the store, and notes which are in the
 * object store. Copies that the store never had stay: it may have been restored to an older state.
 */
export async function sweepSnapshots(ports: SweepPorts, signal: AbortSignal): Promise<number> {
  if (ports.isMine) await sweepFiles(ports, signal)
  await discardUnpublished(ports)
  return intervalMs
}

async function sweepFiles(ports: SweepPorts, signal: AbortSignal): Promise<void> {
  const { snapshots, issuedFiles, node, copying } = ports
  // List the node first: the record of a copy exists before the copy and outlives it.
  const { ids: onNode, durableIds } = await node.sandboxes.listSnapshots(
    AbortSignal.any([signal, AbortSignal.timeout(nodeTimeoutMs)]),
  )
  const known = await snapshots.known(onNode)
  await snapshots.markDurable(durableIds)
  // A node without access to the object store cannot say what the store has.
  const absent = notUploaded({ ids: onNode, durableIds })
  if (node.hasObjects) await snapshots.clearDurable(node.id, absent)
  const unknown = onNode.filter((id) => !known.has(id))
  const issued = await issuedFiles.among(unknown)
  for (const id of unknown) {
    if (issued.has(id)) await copying.discard({ id, nodeId: node.id })
    else ports.onUnknown(id)
  }
}

async function discardUnpublished(ports: SweepPorts): Promise<void> {
  const { snapshots, node, isMine, copying, leases, clock, processId } = ports
  // Read records before leases: a process takes its lease before it makes a copy.
  const unpublished = await snapshots.listUnpublished()
  const live = new Set((await leases.listLive(clock.now())).map((holder) => holder.processId))
  for (const { id, nodeId, holder } of unpublished) {
    if (nodeId !== node.id) continue
    // While a process lives, it alone knows which of its copies are in use.
    if (!isMine && holder !== processId) continue
    const isHeld = holder === processId ? copying.isInUse(id) : holder && live.has(holder)
    if (isHeld || copying.isInUse(id)) continue
    // Check again: the owner may have published and released the copy since the records were read.
    const isUnpublished = (await snapshots.listUnpublished()).some((one) => one.id === id)
    if (isUnpublished) await copying.discard({ id, nodeId })
  }
}
