import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import type { Slot } from '../../domain/network/slot.ts'
import { indexOfAny } from './pool-set.ts'
import type { Pool, PoolCell } from './pool-set.ts'

export interface ReadyCellPorts {
  setRules(slot: Slot, rules: NetworkRules | undefined): Promise<void>
  isAlive(cell: Cell): boolean
  nowMs(): number
  onError(error: unknown): void
}

/** Takes pre-warmed cells out of the pools, for a request or to remove them. */
export interface ReadyCells {
  /**
   * Takes a cell with these network rules applied. `find` returns the index of the wanted cell, or a negative number.
   */
  take(
    pool: Pool,
    network: NetworkRules | undefined,
    find: (ready: readonly PoolCell[]) => number,
  ): Promise<Cell | undefined>
  /** Removes all cells of a pool. A cell that cannot be removed stays in the pool, for the next attempt. */
  empty(pool: Pick<Pool, 'cells'>): Promise<void>
  /** Takes the cells out of a pool that exceed its demand. */
  takeSurplus(pool: Pool): PoolCell[]
}

export function createReadyCells(parts: {
  readonly ports: ReadyCellPorts
  /** Cells of the pools that are frozen. */
  readonly frozen: Set<string>
  readonly erase: (cell: Cell) => Promise<void>
  /** Called with the number of cells that are left in the pool. */
  readonly onTaken: (left: number) => void
}): ReadyCells {
  const { ports, frozen, erase } = parts

  function takeLiving(pool: Pool, find: (ready: readonly PoolCell[]) => number): Cell | undefined {
    const { cells: ready } = pool
    for (;;) {
      const index = find(ready)
      const [next] = index < 0 ? [] : ready.splice(index, 1)
      if (!next) return undefined
      if (ports.isAlive(next.cell)) return next.cell
      void erase(next.cell).catch(ports.onError)
    }
  }

  async function eraseFrozen(cell: Cell): Promise<void> {
    frozen.delete(cell.record.cellId)
    await erase(cell)
  }

  return {
    async take(pool, network, find) {
      const cell = takeLiving(pool, find)
      if (!cell) return undefined
      parts.onTaken(pool.cells.length)
      try {
        if (network) await ports.setRules(cell.slot, network)
        return cell
      } catch (error) {
        // Rethrow the original error; cleanup errors are secondary.
        await eraseFrozen(cell).catch(ports.onError)
        throw error
      }
    },

    empty: ({ cells }) => removeAll(cells, ({ cell }) => eraseFrozen(cell)),

    takeSurplus({ demand, cells }) {
      const surplus: PoolCell[] = []
      while (cells.length > demand.level(ports.nowMs())) {
        surplus.push(...cells.splice(indexOfAny(cells), 1))
      }
      return surplus
    },
  }
}

/** Empties a list. An item whose removal fails returns to the list. */
async function removeAll<T>(items: T[], remove: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  for (const item of items.splice(0)) {
    try {
      await remove(item)
    } catch (error) {
      items.push(item)
      failures.push(error) // the others do not wait for this one
    }
  }
  if (failures.length > 0) throw failures[0]
}
