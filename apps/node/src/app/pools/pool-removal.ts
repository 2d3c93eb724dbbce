import type { Pool, PoolSet } from './pool-set.ts'
import type { ReadyCells } from './ready-cells.ts'

/** Removes pre-warmed cells. A later call tries again what an earlier one could not remove. */
export interface PoolRemoval {
  /** Removes the pools that match, with their cells. */
  remove(matches: (pool: Pool) => boolean): Promise<void>
  /** Removes the cells of all pools that exceed their demand. */
  trim(): Promise<void>
}

export function createPoolRemoval(
  pools: PoolSet,
  ready: Pick<ReadyCells, 'empty' | 'takeSurplus'>,
): PoolRemoval {
  /** Removed pools, and surplus cells of others, until all their cells are gone. */
  const removed = new Set<Pool>()

  async function empty(pool: Pool): Promise<void> {
    removed.delete(pool)
    try {
      await ready.empty(pool)
    } finally {
      if (pool.cells.length > 0) removed.add(pool)
    }
  }

  async function emptyRemoved(matches: (pool: Pool) => boolean): Promise<void> {
    const results = await Promise.allSettled([...removed].filter(matches).map(empty))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  return {
    async remove(matches) {
      for (const pool of pools.remove(matches)) removed.add(pool)
      await emptyRemoved(matches)
    },

    async trim() {
      for (const pool of pools.values()) removed.add({ ...pool, cells: ready.takeSurplus(pool) })
      await emptyRemoved(() => true)
    },
  }
}
