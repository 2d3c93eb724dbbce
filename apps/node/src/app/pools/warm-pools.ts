import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Slot } from '../../domain/network/slot.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'
import { createCellMaker, noRoom } from './cell-maker.ts'
import type { CellMakerPorts } from './cell-maker.ts'
import { createIdentityOffers } from './identity-offers.ts'
import { createPoolFiller } from './pool-filler.ts'
import type { PoolFillerPorts } from './pool-filler.ts'
import { createPoolSet, estimatedCellBytes, indexOfAny } from './pool-set.ts'
import type { PoolCell, PoolStatus } from './pool-set.ts'
import type { Prototypes } from './prototypes.ts'

/**
 * Source of new cells: a warm pool per shape in demand, else a prototype, else a boot. Cells in the pools are frozen
 * and cost only memory, within a budget.
 */
export interface WarmPools {
  /** Returns a cell with the plan's network rules applied. A pooled cell may have a preassigned identity. */
  take(plan: CellPlan): Promise<Cell>
  /** Returns the pre-warmed cell with this preassigned identity, if there is one, with its network rules applied. */
  takePreassigned(plan: CellPlan, identity: Identity): Promise<Cell | undefined>
  /** Thaws a cell from a pool. Must be called for every cell that was taken. */
  thaw(cellId: string): Promise<void>
  /** Preassigns an identity to the next pre-warmed cell. Resolves once that cell is ready. */
  preassign(identity: Identity, signal: AbortSignal): Promise<Shape>
  list(): PoolStatus[]
  /** Removes the pre-warmed cells of a deleted template and makes no more. */
  removeTemplate(templateId: string): Promise<void>
  /** Removes pre-warmed cells beyond the demand. */
  trim(): Promise<void>
  /** Stops filling the pools. Pre-warmed cells stay for the next agent. */
  close(): Promise<void>
}

export interface WarmPoolPorts extends CellMakerPorts, PoolFillerPorts {
  /** Returns undefined when this node has no such template. */
  findTemplate(templateId: string): TemplateFiles | undefined
  setRules(slot: Slot, rules: NetworkRules): Promise<void>
  thaw(cellId: string): Promise<void>
  isAlive(cell: Cell): boolean
}

/** High enough to keep disk and CPU busy, low enough that each create stays fast. */
const makesAtOnce = 4
/** Delay before a refill, which would slow down the first command in the sandbox that was just taken. */
const refillDelayMs = { whenMoreAreReady: 300, whenNoneIs: 50 }
/** More requests would wait longer than any client does. */
const mostWaiting = 256
/** Limit for one cell of a pool. */
const defaultPatienceMs = 30_000

export function createWarmPools(parts: {
  readonly ports: WarmPoolPorts
  readonly cells: Cells
  readonly prototypes: Prototypes
  readonly budgetBytes: number
  /** Minimum number of pre-warmed cells per shape, independent of demand. */
  readonly floors: readonly { readonly shape: Shape; readonly count: number }[]
  readonly adopted: readonly Cell[]
  readonly patienceMs?: number | undefined
}): WarmPools {
  const { ports, cells, patienceMs = defaultPatienceMs } = parts
  const pools = createPoolSet({ budgetBytes: parts.budgetBytes, nowMs: ports.nowMs })
  const frozen = new Set<string>()
  const gate = limitConcurrency(makesAtOnce)
  const offers = createIdentityOffers()
  const maker = createCellMaker(parts)
  let waiting = 0
  const filler = createPoolFiller({
    ...parts,
    pools,
    maker,
    offers,
    frozen,
    patienceMs,
    isBusy: () => waiting > 0,
    erase: cells.erase,
  })

  for (const { shape, count } of parts.floors) pools.ensure(shape, count)
  for (const cell of parts.adopted) {
    frozen.add(cell.record.cellId)
    const adopted = { cell, bytes: estimatedCellBytes, preassignedAs: undefined }
    pools.ensure(cell.record).cells.push(adopted)
  }
  filler.nudge()

  /** `find` returns the index of the wanted cell, or a negative number. */
  function takeReady(shape: Shape, find: (ready: readonly PoolCell[]) => number): Cell | undefined {
    const { cells: ready } = pools.ensure(shape)
    for (;;) {
      const index = find(ready)
      const [next] = index < 0 ? [] : ready.splice(index, 1)
      if (!next) return undefined
      if (!ports.isAlive(next.cell)) {
        void cells.erase(next.cell).catch(ports.onError)
        continue
      }
      // Delay the refill: making a cell would take CPU from the sandbox that was just taken.
      filler.nudgeAfter(refillDelayMs[ready.length === 0 ? 'whenNoneIs' : 'whenMoreAreReady'])
      return next.cell
    }
  }

  /** Checks that the template exists, before the request counts as demand. */
  function checkTemplate({ templateId }: Shape): void {
    if (ports.findTemplate(templateId)) return
    const message = `Template ${templateId} does not exist on this node`
    throw new Fault('not_found', 'template_not_found', message)
  }

  async function applyRules(cell: Cell, network: NetworkRules | undefined): Promise<Cell> {
    try {
      if (network) await ports.setRules(cell.slot, network)
      return cell
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await eraseFrozen(cell).catch(ports.onError)
      throw error
    }
  }

  async function eraseFrozen(cell: Cell): Promise<void> {
    frozen.delete(cell.record.cellId)
    await cells.erase(cell)
  }

  async function makeInTurn(plan: CellPlan): Promise<Cell> {
    if (waiting >= mostWaiting) {
      throw noRoom(
        `Too many sandboxes are being started (${waiting}, the limit is ${mostWaiting}); try again later`,
      )
    }
    waiting += 1
    const making = gate(async () => {
      await maker.checkHost()
      return maker.make(plan)
    })
    const made = await making.finally(() => {
      waiting -= 1
      filler.nudge()
    })
    // Run the start command outside the gate, so that other requests need not wait for it.
    return maker.start(made, plan.signal)
  }

  return {
    async take(plan) {
      if (plan.from || plan.files) return makeInTurn(plan)
      checkTemplate(plan.shape)
      pools.ensure(plan.shape).demand.note(ports.nowMs())
      const ready = takeReady(plan.shape, indexOfAny)
      return ready ? applyRules(ready, plan.network) : makeInTurn(plan)
    },

    async takePreassigned(plan, { sandboxId, accessToken }) {
      const found = takeReady(plan.shape, (ready) =>
        ready.findIndex(
          ({ preassignedAs: identity }) =>
            identity?.sandboxId === sandboxId && identity.accessToken === accessToken,
        ),
      )
      if (!found) return undefined
      pools.ensure(plan.shape).demand.note(ports.nowMs())
      return applyRules(found, plan.network)
    },

    async thaw(cellId) {
      if (frozen.delete(cellId)) await ports.thaw(cellId)
    },

    preassign: offers.add,
    list: pools.list,

    async removeTemplate(templateId) {
      filler.removeTemplate(templateId)
      for (const { cells: ready } of pools.remove(templateId)) {
        for (const { cell } of ready.splice(0)) await eraseFrozen(cell)
      }
    },

    async trim() {
      for (const { demand, cells: ready } of pools.values()) {
        while (ready.length > demand.level(ports.nowMs())) {
          const [surplus] = ready.splice(indexOfAny(ready), 1)
          if (!surplus) break
          await eraseFrozen(surplus.cell)
        }
      }
    },

    close: filler.close,
  }
}
