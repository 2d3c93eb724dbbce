import { createHash } from 'node:crypto'

/**
 * Chooses the node of a team's builds, the same in every process (rendezvous hashing): when a node is added or removed,
 * only the teams that move to or from it change their node.
 */
export function chooseHome(teamId: string, nodeIds: readonly string[]): string | undefined {
  const weightOf = (nodeId: string) =>
    createHash('sha256').update(`${teamId} ${nodeId}`).digest('hex')
  const weighted = nodeIds.map((nodeId) => ({ nodeId, weight: weightOf(nodeId) }))
  return weighted.toSorted((a, b) => (a.weight < b.weight ? 1 : -1))[0]?.nodeId
}
