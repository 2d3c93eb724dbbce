/** Nodes that one api visits at the usual interval. */
const unhurriedCount = 50
/** Records and nodes must agree within a minute, also when an event was lost. */
const longestMs = 30_000

/** Whether an api visits the nodes less often than usual, to have time for requests. */
export function isLarge(nodeCount: number): boolean {
  return nodeCount > unhurriedCount
}

/**
 * Returns the time until the next visit of a node: longer in a large fleet, so that visits do not take an api's time from
 * requests. Spread by chance, since the visits of all nodes begin together. A node without others is visited at the
 * usual interval.
 */
export function paceOf(
  intervalMs: number,
  nodeCount: number,
  random: () => number = Math.random,
): number {
  if (nodeCount < 2) return intervalMs
  const stretchedMs = Math.min((intervalMs * nodeCount) / unhurriedCount, longestMs)
  return Math.max(intervalMs, stretchedMs) * (0.5 + random())
}
