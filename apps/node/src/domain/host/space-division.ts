/**
 * Sandbox disks are sparse images on the data file system, so together they may promise more than that file system has.
 * These rules decide how much each mounted disk may still grow: never more, in sum, than the host can really store. A
 * sandbox that has used up its share gets ENOSPC at the write, before any data exists that the host could lose.
 *
 * A block that is free inside but still allocated in the image is stale. Stale blocks hide debts, and a program that
 * deletes and writes elsewhere lets its image grow without using more inside. So only the growth of a trimmed disk can
 * be limited; any other disk counts as if it filled all holes of its image.
 */

/** A mounted disk image. */
export interface DiskState {
  readonly id: string
  /** Logical size of the image. */
  readonly sizeBytes: number
  /** Used by files inside, dirty pages included. */
  readonly usedBytes: number
  /** Free inside, counting dirty pages as used. */
  readonly freeBytes: number
  /** Allocated for the image on the data file system. */
  readonly imageBytes: number
  /** True for a disk without stale blocks: it returns blocks to the host before they become free inside. */
  readonly isTrimmed: boolean
}

/** How much a disk may still grow. `locked`: it gets no block at all, not even after deletions. */
export type Allowance = number | 'locked'

export type Allowances = ReadonlyMap<string, Allowance>

export interface SpaceDivision {
  /** Space the host can still give beyond all guarantees. Negative when its debts exceed its space. */
  readonly spareBytes: number
  /** Space left over if all disks filled up completely. Negative when they cannot. */
  readonly slackBytes: number
  /** Space left over for trimmed disks to share if no disk were trimmed. Negative when some have to be. */
  readonly untrimmedSlackBytes: number
  /** Undefined: all disks could fill up completely, so none is limited. */
  readonly allowances: Allowances | undefined
}

export interface AvailableSpace {
  readonly freeBytes: number
  readonly reserveBytes: number
  /** Space reserved for operations in progress. */
  readonly heldBytes: number
  /** Assumed maximum growth of an untrimmed disk until the next division. Infinite: no assumption. */
  readonly untrimmedGrowthBytes: number
}

/** Used inside the disk, but not stored by the host yet: dirty pages, preallocated blocks, unwritten inode tables. */
export function debtBytes(disk: DiskState): number {
  return Math.max(0, insideBytes(disk) - disk.imageBytes)
}

/** The first 64 MiB that a sandbox writes are guaranteed: sandboxes that write more cannot take them away. */
export const guaranteedBytes = 64 * 1024 ** 2

/** Divides the host's free space among the disks. */
export function divideSpace(disks: readonly DiskState[], available: AvailableSpace): SpaceDivision {
  const budget = available.freeBytes - available.reserveBytes - available.heldBytes
  const slackBytes = budget - sum(disks.map(holeBytes))
  return {
    spareBytes: budget - sum(disks.map((disk) => debtBytes(disk) + guaranteeOf(disk))),
    slackBytes,
    untrimmedSlackBytes: budget - sum(disks.map((disk) => openClaim(disk, available))),
    allowances: slackBytes >= 0 ? undefined : allowancesFor(disks, budget, available),
  }
}

function allowancesFor(
  disks: readonly DiskState[],
  budget: number,
  available: AvailableSpace,
): Allowances {
  const trimmed = disks.filter(({ isTrimmed }) => isTrimmed)
  const untrimmed = disks.filter(({ isTrimmed }) => !isTrimmed)
  const left = budget - sum(trimmed.map(debtBytes))
  const locked = chooseLocked(untrimmed, left - sum(trimmed.map(guaranteeOf)), available)
  const claims = untrimmed.map((disk) =>
    locked.has(disk.id) ? lockedClaim(disk) : openClaim(disk, available),
  )
  const shares = shareOut(trimmed, left - sum(claims))
  return new Map<string, Allowance>([
    ...untrimmed.map(({ id, freeBytes }): [string, Allowance] => [
      id,
      locked.has(id) ? 'locked' : Math.min(freeBytes, available.untrimmedGrowthBytes),
    ]),
    ...trimmed.map(({ id }, index): [string, Allowance] => [id, shares[index] ?? 0]),
  ])
}

/**
 * Chooses disks to lock until the others fit into the space, the ones whose lock saves the most first. When none of them
 * fits, all are locked: a claim counts what a disk may hide, and an open disk can still add to that.
 */
function chooseLocked(
  disks: readonly DiskState[],
  spaceBytes: number,
  available: AvailableSpace,
): ReadonlySet<string> {
  const locked = new Set<string>()
  let left = spaceBytes - sum(disks.map((disk) => openClaim(disk, available)))
  const savings = disks.map((disk) => ({
    id: disk.id,
    bytes: openClaim(disk, available) - lockedClaim(disk),
  }))
  for (const { id, bytes } of savings.toSorted((a, b) => b.bytes - a.bytes)) {
    if (left >= 0) break
    locked.add(id)
    left += bytes
  }
  return locked
}

/** Shares space among trimmed disks: the guarantees first, then the rest evenly. */
function shareOut(disks: readonly DiskState[], spaceBytes: number): number[] {
  const guarantees = disks.map(guaranteeOf)
  const rest = spaceBytes - sum(guarantees)
  if (rest < 0) return fill(guarantees, spaceBytes)
  const demands = disks.map((disk, index) => disk.freeBytes - (guarantees[index] ?? 0))
  return fill(demands, rest).map((share, index) => share + (guarantees[index] ?? 0))
}

/** Maximum growth of an untrimmed image that may write: all its holes, unless the growth is assumed to be slower. */
function openClaim(disk: DiskState, { untrimmedGrowthBytes }: AvailableSpace): number {
  return Math.min(holeBytes(disk), insideBytes(disk) + untrimmedGrowthBytes)
}

/** Maximum growth of an untrimmed image that gets no block: stale blocks may hide that nothing inside is stored yet. */
function lockedClaim(disk: DiskState): number {
  return Math.min(holeBytes(disk), insideBytes(disk))
}

function guaranteeOf({ freeBytes, usedBytes }: DiskState): number {
  return Math.min(freeBytes, Math.max(0, guaranteedBytes - usedBytes))
}

/** Files and the disk's own metadata. */
function insideBytes({ sizeBytes, freeBytes }: DiskState): number {
  return sizeBytes - freeBytes
}

/** Never negative: an image has a few blocks more than its size, for the host's own metadata of it. */
function holeBytes({ sizeBytes, imageBytes }: DiskState): number {
  return Math.max(0, sizeBytes - imageBytes)
}

/** Max-min fair division: small demands are met in full, and the others get equal shares. */
function fill(demands: readonly number[], supply: number): number[] {
  const level = fillLevel(demands, supply)
  return demands.map((demand) => Math.min(demand, level))
}

function fillLevel(demands: readonly number[], supply: number): number {
  let left = Math.max(0, supply)
  const ascending = demands.toSorted((a, b) => a - b)
  for (const [index, demand] of ascending.entries()) {
    const even = Math.floor(left / (ascending.length - index))
    if (demand > even) return even
    left -= demand
  }
  return Infinity
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
