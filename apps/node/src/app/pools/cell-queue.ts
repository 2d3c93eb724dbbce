import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import type { CellPlan } from '../lifecycle/cells.ts'
import { noRoom } from './cell-maker.ts'
import type { CellMaker } from './cell-maker.ts'

/** Makes cells for requests that no pre-warmed cell can serve, a few at a time. */
export interface CellQueue {
  /** Throws a fault when too many requests wait already. */
  make(plan: CellPlan): Promise<Cell>
  /** Whether requests wait for cells. */
  isBusy(): boolean
  /** Whether requests wait for their turn. */
  isCrowded(): boolean
}

/** High enough to keep disk and CPU busy, low enough that each create stays fast. */
const makesAtOnce = 4
/** More requests would wait longer than any client does. */
const maxWaiting = 256

/** `onMade` is called after each attempt. */
export function createCellQueue(maker: CellMaker, onMade: () => void): CellQueue {
  const limit = limitConcurrency(makesAtOnce)
  let waiting = 0
  return {
    async make(plan) {
      if (waiting >= maxWaiting) {
        throw noRoom(
          `Too many sandboxes are being started (${waiting}, the limit is ${maxWaiting}); try again later`,
        )
      }
      waiting += 1
      const making = limit(async () => {
        await maker.checkHost()
        return maker.make(plan)
      })
      const made = await making.finally(() => {
        waiting -= 1
        onMade()
      })
      // Run the start command outside the limit, so that other requests need not wait for it.
      return maker.start(made, plan.signal)
    },

    isBusy: () => waiting > 0,
    isCrowded: () => waiting > makesAtOnce,
  }
}
