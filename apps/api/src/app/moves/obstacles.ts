import type { Fleet } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'

/** Returns why no sandbox can leave the node now. Undefined: nothing is known to be in the way. */
export function findObstacle(
  { fleet, placing }: { readonly fleet: Fleet; readonly placing: Pick<Placing, 'conditionOf'> },
  nodeId: string,
): string | undefined {
  const factsOf = (id: string) => (fleet.reaches(id) ? fleet.member(id).facts() : undefined)
  const facts = factsOf(nodeId)
  if (!facts) return 'The node does not answer'
  if (!facts.keepsMemory) return 'The runtime of the node cannot save the memory of a sandbox'
  if (!facts.hasObjects) return 'The node has no object store: set ATOLL_S3_BUCKET on all nodes'
  const canTake = (id: string) =>
    id !== nodeId &&
    placing.conditionOf(id) === 'well' &&
    factsOf(id)?.hasObjects === true &&
    factsOf(id)?.keepsMemory === true
  if (fleet.ids().some(canTake)) return undefined
  return 'No other node with an object store takes sandboxes'
}
