import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { shapeKey } from '../../domain/sandboxes/cell.ts'
import type { Cell, CellRecord, Shape } from '../../domain/sandboxes/cell.ts'
import { createDemand } from '../../domain/sandboxes/demand.ts'
import type { Demand } from '../../domain/sandboxes/demand.ts'
import type { NetworkRules } from '../../domain/network/network-rules.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { RunStartCommand } from '../lifecycle/start-command.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'
import { createIdentityOffers } from './identity-offers.ts'
import { createPrototypePreparation } from './prototype-preparation.ts'
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

export interface PoolStatus {
  readonly shape: Shape
  readonly ready: number
  readonly target: number
}

export interface WarmPoolPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  /** Waits for envd and makes it load everything it will need. */
  prepare(cell: Cell): Promise<void>
  assignIdentity(cell: Cell, identity: Identity): Promise<void>
  /** Returns undefined when this node has no such template. */
  findTemplate(templateId: string): TemplateFiles | undefined
  readonly runStartCommand: RunStartCommand
  setRules(slot: Slot, rules: NetworkRules): Promise<void>
  freeze(cellId: string): Promise<void>
  thaw(cellId: string): Promise<void>
  isAlive(cell: Cell): boolean
  memoryBytes(cellId: string): Promise<number>
  /** Memory that the machine could give to new processes. */
  freeMemoryBytes(): Promise<number>
  /** Throws a fault when the host has no disk space for another sandbox. */
  checkDisk(): void
  nowMs(): number
  onError(error: unknown): void
}

/** High enough to keep disk and CPU busy, low enough that each create stays fast. */
const makesAtOnce = 4
/** Delay before a refill, which would slow down the first command in the sandbox that was just taken. */
const refillDelayMs = { whenMoreAreReady: 300, whenNoneIs: 50 }
/** More requests would wait longer than any client does. */
const mostWaiting = 256
/** Refuse below this limit: a machine without memory kills arbitrary processes. */
const spareMemoryBytes = 256 * 1024 * 1024
/** Pause of a pool after a failure. An immediate retry would slow down waiting requests. */
const restMs = 5_000
/** Limit for one cell. Pools are filled one cell at a time, so a slow cell delays all others. */
const usualPatienceMs = 30_000
/** Estimated memory of a cell before the first one is measured. */
const usualBytes = 100 * 1024 * 1024

interface Shelf {
  readonly shape: Shape
  readonly demand: Demand
  readonly cells: Ready[]
  restsUntilMs: number
}

interface Ready {
  readonly cell: Cell
  readonly bytes: number
  /** Preassigned identity. */
  readonly preassignedAs: Identity | undefined
}

interface Made {
  readonly cell: Cell
  /** Booted, not restored from memory. */
  readonly isBooted: boolean
}

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
  const { ports, cells, prototypes, budgetBytes, patienceMs = usualPatienceMs } = parts
  const shelves = new Map<string, Shelf>()
  const frozen = new Set<string>()
  const gate = limitConcurrency(makesAtOnce)
  const offers = createIdentityOffers()
  let underway = 0
  let filling: Promise<void> | undefined
  let isClosed = false
  const preparation = createPrototypePreparation({
    prototypes,
    patienceMs,
    onSlowEnd(shape, failure) {
      if (failure) letRest(shapeKey(shape), failure.error)
      nudge()
    },
  })

  for (const { shape, count } of parts.floors) shelfOf(shape, count)
  for (const cell of parts.adopted) {
    frozen.add(cell.record.cellId)
    shelfOf(cell.record).cells.push({ cell, bytes: usualBytes, preassignedAs: undefined })
  }
  nudge()

  function shelfOf(shape: Shape, floor = 0): Shelf {
    const key = shapeKey(shape)
    const shelf = shelves.get(key) ?? {
      shape,
      demand: createDemand(floor),
      cells: [],
      restsUntilMs: 0,
    }
    shelves.set(key, shelf)
    return shelf
  }

  /** `find` returns the index of the wanted cell, or a negative number. */
  function takeReady(shape: Shape, find: (ready: readonly Ready[]) => number): Cell | undefined {
    const { cells: ready } = shelfOf(shape)
    for (;;) {
      const index = find(ready)
      const [next] = index < 0 ? [] : ready.splice(index, 1)
      if (!next) return undefined
      if (!ports.isAlive(next.cell)) {
        void cells.erase(next.cell).catch(ports.onError)
        continue
      }
      // Delay the refill: making a cell would take CPU from the sandbox that was just taken.
      const delayMs = refillDelayMs[ready.length === 0 ? 'whenNoneIs' : 'whenMoreAreReady']
      setTimeout(nudge, delayMs).unref()
      return next.cell
    }
  }

  /** Checks that the template exists, before the request counts as demand. */
  function checkTemplate({ templateId }: Shape): void {
    if (ports.findTemplate(templateId)) return
    throw new Fault('not_found', 'template_not_found', `No template ${templateId} here`)
  }

  async function checkHost(): Promise<void> {
    ports.checkDisk()
    const free = await ports.freeMemoryBytes()
    if (free < spareMemoryBytes) throw noRoom('This machine has no memory left for another sandbox')
  }

  async function ruled(cell: Cell, network: NetworkRules | undefined): Promise<Cell> {
    try {
      if (network) await ports.setRules(cell.slot, network)
      return cell
    } catch (error) {
      frozen.delete(cell.record.cellId)
      // Rethrow the original error; cleanup errors are secondary.
      await cells.erase(cell).catch(ports.onError)
      throw error
    }
  }

  async function make(plan: CellPlan): Promise<Made> {
    const prototype = plan.from || plan.files ? undefined : await prototypes.find(plan.shape)
    if (!prototype) {
      const isBooted = plan.from?.snapshot.memory === undefined
      return { cell: await cells.make(plan), isBooted }
    }
    try {
      return { cell: await cells.make({ ...plan, from: prototype }), isBooted: false }
    } catch (error) {
      // Neither an abort nor a full host says anything about the prototype.
      const isFull = error instanceof Fault && error.kind === 'exhausted'
      if (plan.signal?.aborted || isFull) throw error
      ports.onError(error)
      await prototypes.discard(plan.shape)
      return { cell: await cells.make(plan), isBooted: true }
    }
  }

  async function begun({ cell, isBooted }: Made, signal?: AbortSignal): Promise<Cell> {
    // Restored cells have already run their start command.
    if (!isBooted) return cell
    try {
      await ports.runStartCommand(cell, { signal })
      return cell
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await cells.erase(cell).catch(ports.onError)
      throw error
    }
  }

  function nudge(): void {
    if (filling || isClosed || !neediest()) return
    filling = fill()
      .catch(ports.onError)
      .finally(() => {
        filling = undefined
        // Calls to `nudge` during the fill had no effect.
        if (underway === 0) nudge()
      })
  }

  /** Fills pools one cell at a time, and never while a request waits for a cell. */
  async function fill(): Promise<void> {
    while (!isClosed && underway === 0) {
      const shelf = neediest()
      if (!shelf) return
      try {
        await checkHost()
        if (await preparation.isDoneSoon(shelf.shape)) await stock(shelf)
      } catch (error) {
        letRest(shapeKey(shelf.shape), error)
      }
    }
  }

  /** Pauses a pool after a failure. Ignores a removed pool: its cancellation is not a failure. */
  function letRest(key: string, error: unknown): void {
    const shelf = shelves.get(key)
    if (isClosed || !shelf) return
    // A full disk is already logged elsewhere.
    if (!(error instanceof Fault && error.reason === diskFull)) ports.onError(error)
    shelf.restsUntilMs = ports.nowMs() + restMs
    setTimeout(nudge, restMs).unref()
  }

  function neediest(): Shelf | undefined {
    const nowMs = ports.nowMs()
    const all = [...shelves.values()]
    const taken = all.flatMap((shelf) => shelf.cells.map(({ bytes }) => bytes))
    const largest = taken.length === 0 ? usualBytes : Math.max(...taken)
    if (taken.reduce((sum, bytes) => sum + bytes, largest) > budgetBytes) return undefined
    return all
      .filter((shelf) => shelf.restsUntilMs <= nowMs && missing(shelf, nowMs) > 0)
      .filter(({ shape }) => !preparation.isSlow(shape))
      .toSorted((a, b) => missing(b, nowMs) - missing(a, nowMs))[0]
  }

  function missing({ demand, cells: ready }: Shelf, nowMs: number): number {
    return demand.level(nowMs) - ready.length
  }

  async function stock(shelf: Shelf): Promise<void> {
    const limit = AbortSignal.timeout(patienceMs)
    const made = await begun(await make({ shape: shelf.shape }), limit)
    const cell = { ...made, record: { ...made.record, phase: 'ready' as const } }
    const offer = offers.take()
    try {
      await ports.prepare(cell)
      if (offer) await ports.assignIdentity(cell, offer.identity)
      await ports.freeze(cell.record.cellId)
      frozen.add(cell.record.cellId)
      await ports.records.update(cell.record)
      const bytes = await ports.memoryBytes(cell.record.cellId)
      if (shelves.get(shapeKey(shelf.shape)) !== shelf) throw new Error('nobody wants it any more')
      shelf.cells.push({ cell, bytes, preassignedAs: offer?.identity })
      offer?.resolve(shelf.shape)
    } catch (error) {
      frozen.delete(cell.record.cellId)
      if (offer) offers.putBack(offer)
      await cells.erase(cell)
      throw error
    }
  }

  return {
    async take(plan) {
      if (!plan.from && !plan.files) {
        checkTemplate(plan.shape)
        shelfOf(plan.shape).demand.note(ports.nowMs())
        const ready = takeReady(plan.shape, anyOf)
        if (ready) return ruled(ready, plan.network)
      }
      if (underway >= mostWaiting) {
        throw noRoom(`${underway} sandboxes are being started already; try again later`)
      }
      underway += 1
      const making = gate(async () => {
        await checkHost()
        return make(plan)
      })
      const made = await making.finally(() => {
        underway -= 1
        nudge()
      })
      // Run the start command outside the gate, so that other requests need not wait for it.
      return begun(made, plan.signal)
    },

    async takePreassigned(plan, { sandboxId, accessToken }) {
      const named = takeReady(plan.shape, (ready) =>
        ready.findIndex(
          ({ preassignedAs }) =>
            preassignedAs?.sandboxId === sandboxId && preassignedAs.accessToken === accessToken,
        ),
      )
      if (!named) return undefined
      shelfOf(plan.shape).demand.note(ports.nowMs())
      return ruled(named, plan.network)
    },

    async thaw(cellId) {
      if (frozen.delete(cellId)) await ports.thaw(cellId)
    },

    preassign: offers.add,

    list: () =>
      [...shelves.values()].map(({ shape, demand, cells: ready }) => ({
        shape,
        ready: ready.length,
        target: demand.level(ports.nowMs()),
      })),

    async removeTemplate(templateId) {
      preparation.removeTemplate(templateId)
      for (const [key, { shape, cells: ready }] of shelves) {
        if (shape.templateId !== templateId) continue
        shelves.delete(key)
        for (const { cell } of ready.splice(0)) {
          frozen.delete(cell.record.cellId)
          await cells.erase(cell)
        }
      }
    },

    async trim() {
      for (const { demand, cells: ready } of shelves.values()) {
        while (ready.length > demand.level(ports.nowMs())) {
          const [surplus] = ready.splice(anyOf(ready), 1)
          if (!surplus) break
          frozen.delete(surplus.cell.record.cellId)
          await cells.erase(surplus.cell)
        }
      }
    },

    async close() {
      isClosed = true
      await preparation.close()
      await filling
    },
  }
}

/** Prefers cells without a preassigned identity: the others may still be claimed by theirs. */
function anyOf(ready: readonly Ready[]): number {
  const nameless = ready.findIndex(({ preassignedAs }) => !preassignedAs)
  return nameless >= 0 || ready.length === 0 ? nameless : 0
}

function noRoom(message: string): Fault {
  return new Fault('exhausted', 'no_room', message)
}
