import { shapeKey } from '../../domain/sandboxes/cell.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import {
  createDemand,
  createRepeatedDemand,
  repeatedWithinMs,
} from '../../domain/sandboxes/demand.ts'
import type { Demand } from '../../domain/sandboxes/demand.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'
import type { SavedState } from '../lifecycle/cells.ts'

/** Estimated memory of a cell before the first one is measured. */
export const estimatedCellBytes = 100 * 1024 * 1024

/** Share of the memory of all pools for copies of snapshots: those of one team leave room for the cells of everyone. */
const shareOfSnapshots = 0.5

export interface Pool {
  readonly shape: Shape
  readonly demand: Demand
  /** Number of cells that the pool has at least, whatever the demand. */
  readonly floor: number
  readonly cells: PoolCell[]
  /** Time of the next attempt after a failure. */
  pausedUntilMs: number
  /** Present: the cells are copies of this snapshot, not of the template. */
  readonly snapshot?: SnapshotSource
  lastNeededAtMs: number
}

export interface SnapshotSource {
  readonly snapshotId: string
  readonly from: SavedState
  /** Memory that the first copy may take. Absent: not known yet. */
  expectedBytes?: number
}

export interface PoolCell {
  readonly cell: Cell
  readonly bytes: number
  readonly preassignedAs: Identity | undefined
}

export interface PoolStatus {
  readonly shape: Shape
  /** Absent: the pool of the template. */
  readonly snapshotId?: string
  readonly ready: number
  readonly target: number
}

/** The warm pools of shapes and of snapshots, and how much memory all pools may take. */
export interface PoolSet {
  /** Returns the pool of a shape. Adds one with this minimum size when there is none. */
  ensure(shape: Shape, floor?: number): Pool
  /** Returns the pool of a snapshot, as `ensure` does. */
  ensureSnapshot(shape: Shape, snapshotId: string, from: SavedState): Pool
  find(shape: Shape): Pool | undefined
  has(pool: Pool): boolean
  values(): Pool[]
  /** Removes the pools that match and returns them. */
  remove(matches: (pool: Pool) => boolean): Pool[]
  /** Forgets empty pools of snapshots that were not needed lately. */
  forgetUnused(): void
  list(): PoolStatus[]
  /**
   * Returns the pool that lacks most cells, of those whose next cell fits into the memory of all pools. Pools below their
   * floor come first.
   */
  neediest(isExcluded: (pool: Pool) => boolean): Pool | undefined
}

export function createPoolSet(parts: { readonly budgetBytes: number; nowMs(): number }): PoolSet {
  const pools = new Map<string, Pool>()
  const values = () => [...pools.values()]
  const missing = ({ demand, cells }: Pool, nowMs: number) => demand.level(nowMs) - cells.length

  function add(key: string, pool: Omit<Pool, 'cells' | 'pausedUntilMs' | 'lastNeededAtMs'>): Pool {
    const added = { ...pool, cells: [], pausedUntilMs: 0, lastNeededAtMs: parts.nowMs() }
    pools.set(key, added)
    return added
  }

  function remove(matches: (pool: Pool) => boolean): Pool[] {
    const removed = values().filter(matches)
    for (const pool of removed) pools.delete(keyOf(pool))
    return removed
  }

  return {
    ensure(shape, floor = 0) {
      const key = shapeKey(shape)
      return pools.get(key) ?? add(key, { shape, floor, demand: createDemand(floor) })
    },

    ensureSnapshot(shape, snapshotId, from) {
      const key = snapshotKey(snapshotId)
      const snapshot = { snapshotId, from }
      const pool = { shape, floor: 0, demand: createRepeatedDemand(), snapshot }
      return pools.get(key) ?? add(key, pool)
    },

    find: (shape) => pools.get(shapeKey(shape)),
    has: (pool) => pools.get(keyOf(pool)) === pool,
    values,
    remove,

    forgetUnused: () => void remove((pool) => isUnusedSnapshot(pool, parts.nowMs())),
    list: () => values().map((pool) => statusOf(pool, parts.nowMs())),

    neediest(isExcluded) {
      const nowMs = parts.nowMs()
      return withRoom(values(), parts.budgetBytes)
        .filter((pool) => pool.pausedUntilMs <= nowMs && missing(pool, nowMs) > 0)
        .filter((pool) => !isExcluded(pool))
        .toSorted(
          (a, b) => belowFloor(b) - belowFloor(a) || missing(b, nowMs) - missing(a, nowMs),
        )[0]
    },
  }
}

/** Returns the pools whose next cell fits into the budget. */
function withRoom(all: readonly Pool[], budgetBytes: number): Pool[] {
  const used = (some: readonly Pool[]) => sum(some.flatMap(({ cells }) => bytesOf(cells)))
  const left = budgetBytes - used(all)
  const leftForCopies = Math.min(
    left,
    budgetBytes * shareOfSnapshots - used(all.filter(({ snapshot }) => snapshot)),
  )
  const cellsOfShapes = all.filter(({ snapshot }) => !snapshot).flatMap(({ cells }) => cells)
  const largest = largestOf(cellsOfShapes) ?? estimatedCellBytes
  return all.filter((pool) =>
    pool.snapshot ? bytesOfNextCopy(pool.snapshot, pool) <= leftForCopies : largest <= left,
  )
}

/** Returns the memory that the next copy of a snapshot may take. */
export function bytesOfNextCopy(
  { expectedBytes = estimatedCellBytes }: SnapshotSource,
  { cells }: Pick<Pool, 'cells'>,
): number {
  return largestOf(cells) ?? expectedBytes
}

function belowFloor({ floor, cells }: Pool): number {
  return Math.max(0, floor - cells.length)
}

function statusOf({ shape, snapshot, demand, cells }: Pool, nowMs: number): PoolStatus {
  const ofSnapshot = snapshot && { snapshotId: snapshot.snapshotId }
  return { shape, ...ofSnapshot, ready: cells.length, target: demand.level(nowMs) }
}

function isUnusedSnapshot(
  { snapshot, cells, demand, lastNeededAtMs }: Pool,
  nowMs: number,
): boolean {
  if (!snapshot || cells.length > 0) return false
  return demand.level(nowMs) === 0 && nowMs - lastNeededAtMs > repeatedWithinMs
}

function keyOf({ shape, snapshot }: Pool): string {
  return snapshot ? snapshotKey(snapshot.snapshotId) : shapeKey(shape)
}

/** Differs from the keys of shapes, which have three hyphens. */
function snapshotKey(snapshotId: string): string {
  return `snapshot-${snapshotId}`
}

function bytesOf(cells: readonly PoolCell[]): number[] {
  return cells.map(({ bytes }) => bytes)
}

function largestOf(cells: readonly PoolCell[]): number | undefined {
  return cells.length === 0 ? undefined : Math.max(...bytesOf(cells))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/**
 * Returns the index of the cell to take when any will do. Prefers cells without a preassigned identity: the others may
 * still be claimed by theirs.
 */
export function indexOfAny(cells: readonly PoolCell[]): number {
  const unassigned = cells.findIndex(({ preassignedAs }) => !preassignedAs)
  return unassigned >= 0 || cells.length === 0 ? unassigned : 0
}
