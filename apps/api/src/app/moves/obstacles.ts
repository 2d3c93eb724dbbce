import { canRestore } from '../../domain/nodes/can-restore.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'
import { bytesOf } from '../snapshots/estimate-size.ts'
import type { SizeEstimate } from '../snapshots/estimate-size.ts'

interface ObstaclePorts {
  readonly fleet: Fleet
  readonly placing: Pick<Placing, 'conditionOf' | 'hasRoom'>
}

/**
 * Returns why a sandbox of this size cannot leave the node now. Undefined: nothing is known to be in the way. Another node may
 * still refuse the sandbox, after the pause.
 */
export function findObstacle(
  { fleet, placing }: ObstaclePorts,
  nodeId: string,
  size: SizeEstimate,
): string | undefined {
  const factsOf = (id: string) => (fleet.reaches(id) ? fleet.member(id).facts() : undefined)
  const facts = factsOf(nodeId)
  if (!facts) return 'The node does not answer'
  if (!facts.keepsMemory) return 'The runtime of the node cannot save the memory of a sandbox'
  if (!facts.hasObjects) return 'The node has no object store: set ATOLL_S3_BUCKET on all nodes'
  const takes = (id: string) => {
    const other = id === nodeId ? undefined : factsOf(id)
    const keeps = other?.hasObjects === true && other.keepsMemory
    return keeps && placing.conditionOf(id) === 'well'
  }
  const restores = (id: string) => {
    const other = factsOf(id)
    return other !== undefined && canRestore(other, facts)
  }
  const fits = (id: string) => placing.hasRoom(id, size)
  const ids = fleet.ids()
  if (ids.some((id) => takes(id) && restores(id) && fits(id))) return undefined
  if (!ids.some(takes)) return 'No other node with an object store takes sandboxes'
  if (!ids.some((id) => takes(id) && restores(id)))
    return 'No other node can restore the memory: that needs the same runtime release, and all CPU features of this node'
  return `No other node has room for the ${inMb(size.memoryBytes)} MB of memory and ${inMb(bytesOf(size, true))} MB on disk of the sandbox`
}

function inMb(bytes: number): number {
  return Math.ceil(bytes / 1024 ** 2)
}
