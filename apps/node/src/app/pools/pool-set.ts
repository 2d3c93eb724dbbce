import { shapeKey } from '../../domain/sandboxes/cell.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import { createDemand } from '../../domain/sandboxes/demand.ts'
import type { Demand } from '../../domain/sandboxes/demand.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'

/** Estimated memory of a cell before the first one is measured. */
export const estimatedCellBytes = 100 * 1024 * 1024

export interface Pool {
  readonly shape: Shape
  readonly demand: Demand
  readonly cells: PoolCell[]
  /** Time of the next attempt after a failure. */
  pausedUntilMs: number
}

export interface PoolCell {
  readonly cell: Cell
  readonly bytes: number
  readonly preassignedAs: Identity | undefined
}

export interface PoolStatus {
  readonly shape: Shape
  readonly ready: number
  readonly target: number
}

/** The warm pool of each shape, and how much memory all pools may take. */
export interface PoolSet {
  /** Returns the pool of a shape. Adds one with this minimum size when there is none. */
  ensure(shape: Shape, floor?: number): Pool
  find(shape: Shape): Pool | undefined
  values(): Pool[]
  /** Removes the pools of a template and returns them. */
  remove(templateId: string): Pool[]
  list(): PoolStatus[]
  /** Returns the pool that lacks most cells, unless the memory of all pools is used up. */
  neediest(isExcluded: (shape: Shape) => boolean): Pool | undefined
}

export function createPoolSet(parts: { readonly budgetBytes: number; nowMs(): number }): PoolSet {
  const pools = new Map<string, Pool>()
  const values = () => [...pools.values()]
  const missing = ({ demand, cells }: Pool, nowMs: number) => demand.level(nowMs) - cells.length

  function isFull(): boolean {
    const taken = values().flatMap(({ cells }) => cells.map(({ bytes }) => bytes))
    const largest = taken.length === 0 ? estimatedCellBytes : Math.max(...taken)
    return taken.reduce((sum, bytes) => sum + bytes, largest) > parts.budgetBytes
  }

  return {
    ensure(shape, floor = 0) {
      const key = shapeKey(shape)
      const pool = pools.get(key) ?? {
        shape,
        demand: createDemand(floor),
        cells: [],
        pausedUntilMs: 0,
      }
      pools.set(key, pool)
      return pool
    },

    find: (shape) => pools.get(shapeKey(shape)),
    values,

    remove(templateId) {
      const removed = values().filter(({ shape }) => shape.templateId === templateId)
      for (const { shape } of removed) pools.delete(shapeKey(shape))
      return removed
    },

    list: () =>
      values().map(({ shape, demand, cells }) => ({
        shape,
        ready: cells.length,
        target: demand.level(parts.nowMs()),
      })),

    neediest(isExcluded) {
      if (isFull()) return undefined
      const nowMs = parts.nowMs()
      return values()
        .filter((pool) => pool.pausedUntilMs <= nowMs && missing(pool, nowMs) > 0)
        .filter(({ shape }) => !isExcluded(shape))
        .toSorted((a, b) => missing(b, nowMs) - missing(a, nowMs))[0]
    },
  }
}

/**
 * Returns the index of the cell to take when any will do. Prefers cells without a preassigned identity: the others may
 * still be claimed by theirs.
 */
export function indexOfAny(cells: readonly PoolCell[]): number {
  const unassigned = cells.findIndex(({ preassignedAs }) => !preassignedAs)
  return unassigned >= 0 || cells.length === 0 ? unassigned : 0
}
