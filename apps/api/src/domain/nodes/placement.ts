/**
 * Chooses the node of a new sandbox: the least loaded of three random ones. Three instead of all, so that servers with
 * the same slightly old numbers do not all choose the same node.
 */

/** Amounts of what a sandbox takes from a node. */
export interface Load {
  readonly cpuCount: number
  readonly memoryBytes: number
  readonly diskBytes: number
}

export interface Candidate {
  readonly id: string
  readonly capacity: Load
  /** Promised to running and starting sandboxes. */
  readonly promised: Load
  /** Measured use of the machine. */
  readonly used: Load
  /** A pre-warmed sandbox of the shape is ready. */
  readonly hasReadyCell: boolean
  /** The files of the template are on the node. */
  readonly hasLayers: boolean
}

const sampleSize = 3

/** Load that a quick start is worth: a node may be this much busier and still be chosen. */
const readyCellBonus = 0.2
const layersBonus = 0.1

/** Returns candidates in the order in which to try them. `random` returns numbers from 0 to below 1. */
export function rank(
  candidates: readonly Candidate[],
  requested: Load,
  random: () => number = Math.random,
): Candidate[] {
  const sample = takeSample(candidates, random)
  const costs = new Map(sample.map((one) => [one, costOf(one, requested)]))
  return sample.toSorted((a, b) => (costs.get(a) ?? 0) - (costs.get(b) ?? 0))
}

/** Returns the share of the scarcest resource that would be taken, less what a quick start is worth. */
export function costOf(candidate: Candidate, requested: Load): number {
  const { capacity, promised, used, hasReadyCell, hasLayers } = candidate
  const shares = (['cpuCount', 'memoryBytes', 'diskBytes'] as const).map((resource) =>
    // Measured use counts half: it is part of what was promised, and shows what is used besides.
    shareOf(requested[resource] + promised[resource] + used[resource] / 2, capacity[resource]),
  )
  const bonus = hasReadyCell ? readyCellBonus : hasLayers ? layersBonus : 0
  return Math.max(...shares) - bonus
}

/** A capacity of 0 is unknown: it neither attracts nor repels. */
function shareOf(amount: number, capacity: number): number {
  return capacity > 0 ? amount / capacity : 0
}

/**
 * Returns three random nodes that are usable, or fewer if there are fewer. Taken before their loads are read, and checked
 * only when drawn, so that the work does not grow with the fleet.
 */
export function takeSample<T>(
  all: readonly T[],
  random: () => number = Math.random,
  isUsable: (one: T) => boolean = () => true,
): T[] {
  const taken: T[] = []
  // A shuffle that stops early, and that knows only the places that it has changed.
  const moved = new Map<number, number>()
  for (let left = all.length; left > 0 && taken.length < sampleSize; left -= 1) {
    const place = Math.floor(random() * left)
    const index = moved.get(place) ?? place
    moved.set(place, moved.get(left - 1) ?? left - 1)
    taken.push(...all.slice(index, index + 1).filter(isUsable))
  }
  return taken
}
