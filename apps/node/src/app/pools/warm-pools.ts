import { Fault } from '@atoll/kit/fault'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'
import type { BlankCells } from './blank-cells.ts'
import { createCellMaker } from './cell-maker.ts'
import type { CellMakerPorts } from './cell-maker.ts'
import { createCellQueue } from './cell-queue.ts'
import { createIdentityOffers } from './identity-offers.ts'
import { createPoolFiller } from './pool-filler.ts'
import type { PoolFillerPorts } from './pool-filler.ts'
import { createPoolSet, estimatedCellBytes, indexOfAny } from './pool-set.ts'
import type { Pool, PoolStatus } from './pool-set.ts'
import { createPoolRemoval } from './pool-removal.ts'
import type { Prototypes } from './prototypes.ts'
import { createReadyCells } from './ready-cells.ts'
import type { ReadyCellPorts } from './ready-cells.ts'

/**
 * Source of new cells: a warm pool per shape or snapshot in demand, else a prototype, else a boot. Cells in the pools
 * are frozen and cost only memory, within a budget.
 */
export interface WarmPools {
  /** Returns a cell with the plan's network rules applied. A pooled cell may have a preassigned identity. */
  take(plan: CellPlan): Promise<Cell>
  /**
   * Returns a pre-warmed cell, or restores the prototype of the shape. Undefined: there is neither. Does not count as
   * demand: builds are no reason to keep more cells ready.
   */
  takeWithoutBoot(plan: CellPlan): Promise<Cell | undefined>
  /** Returns the pre-warmed cell with this preassigned identity, if there is one, with its network rules applied. */
  takePreassigned(plan: CellPlan, identity: Identity): Promise<Cell | undefined>
  /** Thaws a cell from a pool. Must be called for every cell that was taken. */
  thaw(cellId: string): Promise<void>
  /** Preassigns an identity to the next pre-warmed cell. Resolves once that cell is ready. */
  preassign(identity: Identity, signal: AbortSignal): Promise<Shape>
  list(): PoolStatus[]
  /** Whether requests wait for their turn to get a new cell. */
  isCrowded(): boolean
  /** Counts requests that a pool could serve since the start: `hits` got a pre-warmed cell, `misses` did not. */
  counts(): { readonly hits: number; readonly misses: number }
  /** Removes the pre-warmed cells of a deleted template and makes no more. */
  removeTemplate(templateId: string): Promise<void>
  /** Removes the pre-warmed copies of a snapshot and makes no more. */
  removeSnapshot(snapshotId: string): Promise<void>
  /** Removes pre-warmed cells beyond the demand. */
  trim(): Promise<void>
  /** Stops filling the pools. Pre-warmed cells stay for the next agent. */
  close(): Promise<void>
}

export interface WarmPoolPorts extends CellMakerPorts, PoolFillerPorts, ReadyCellPorts {
  /** Returns undefined when this node has no such template. */
  findTemplate(templateId: string): TemplateFiles | undefined
  thaw(cellId: string): Promise<void>
}

/** Delay before a refill, which would slow down the first command in the sandbox that was just taken. */
const refillDelayMs = { whenMoreAreReady: 300, whenNoneIs: 50 }
/** Limit for one cell of a pool. */
const defaultPatienceMs = 30_000

export function createWarmPools(parts: {
  readonly ports: WarmPoolPorts
  readonly cells: Cells
  readonly prototypes: Prototypes
  /** Given up when the host has no memory for a cell. */
  readonly blanks?: Pick<BlankCells, 'giveUp'> | undefined
  readonly budgetBytes: number
  /** Minimum number of pre-warmed cells per shape, independent of demand. */
  readonly floors: readonly { readonly shape: Shape; readonly count: number }[]
  readonly adopted: readonly Cell[]
  readonly patienceMs?: number | undefined
}): WarmPools {
  const { ports, patienceMs = defaultPatienceMs } = parts
  const { erase } = parts.cells
  const pools = createPoolSet({ budgetBytes: parts.budgetBytes, nowMs: ports.nowMs })
  const frozen = new Set<string>()
  const counts = { hits: 0, misses: 0 }
  const offers = createIdentityOffers()
  const maker = createCellMaker(parts)
  const queue = createCellQueue(maker, () => filler.nudge())
  const filler = createPoolFiller({
    ...parts,
    pools,
    maker,
    offers,
    frozen,
    patienceMs,
    isBusy: queue.isBusy,
    erase,
  })
  const onTaken = (left: number) =>
    filler.nudgeAfter(refillDelayMs[left === 0 ? 'whenNoneIs' : 'whenMoreAreReady'])
  const ready = createReadyCells({ ports, frozen, erase, onTaken })
  const removal = createPoolRemoval(pools, ready)

  /** Returns the pool that could serve a request. */
  function poolFor({ shape, from, files, snapshotId }: CellPlan): Pool | undefined {
    if (from && snapshotId !== undefined) return pools.ensureSnapshot(shape, snapshotId, from)
    if (from || files) return undefined
    // A request for an absent template must not count as demand.
    if (!ports.findTemplate(shape.templateId)) throw noTemplate(shape)
    return pools.ensure(shape)
  }

  async function takeAny(pool: Pool, { network }: CellPlan): Promise<Cell | undefined> {
    pool.demand.note(ports.nowMs())
    pool.lastNeededAtMs = ports.nowMs()
    const found = await ready.take(pool, network, indexOfAny)
    // The first creates from a snapshot find no copy by design.
    if (found || !pool.snapshot) counts[found ? 'hits' : 'misses'] += 1
    return found
  }

  for (const { shape, count } of parts.floors) pools.ensure(shape, count)
  for (const cell of parts.adopted) {
    frozen.add(cell.record.cellId)
    const adopted = { cell, bytes: estimatedCellBytes, preassignedAs: undefined }
    pools.ensure(cell.record).cells.push(adopted)
  }
  filler.nudge()

  return {
    async take(plan) {
      const pool = poolFor(plan)
      const found = pool && (await takeAny(pool, plan))
      return found ?? queue.make({ ...plan, isUrgent: true })
    },

    async takeWithoutBoot(plan) {
      const { shape } = plan
      if (!ports.findTemplate(shape.templateId)) return undefined
      const pool = pools.find(shape)
      const pooled = pool && (await ready.take(pool, plan.network, indexOfAny))
      if (pooled) return pooled
      return (await parts.prototypes.find(shape)) ? queue.make(plan) : undefined
    },

    async takePreassigned(plan, { sandboxId, accessToken }) {
      const found = await ready.take(pools.ensure(plan.shape), plan.network, (cells) =>
        cells.findIndex(
          ({ preassignedAs: identity }) =>
            identity?.sandboxId === sandboxId && identity.accessToken === accessToken,
        ),
      )
      if (found) {
        pools.ensure(plan.shape).demand.note(ports.nowMs())
        counts.hits += 1
      }
      return found
    },

    async thaw(cellId) {
      if (frozen.delete(cellId)) await ports.thaw(cellId)
    },

    preassign: offers.add,
    list: pools.list,
    isCrowded: queue.isCrowded,
    counts: () => counts,

    async removeTemplate(templateId) {
      filler.removeTemplate(templateId)
      await removal.remove(({ shape, snapshot }) => !snapshot && shape.templateId === templateId)
    },

    async removeSnapshot(snapshotId) {
      await removal.remove(({ snapshot }) => snapshot?.snapshotId === snapshotId)
    },

    async trim() {
      await removal.trim().finally(pools.forgetUnused)
    },

    close: filler.close,
  }
}

function noTemplate({ templateId }: Shape): Fault {
  const message = `Template ${templateId} does not exist on this node`
  return new Fault('not_found', 'template_not_found', message)
}
