import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Cell, CellParts } from '../../domain/sandboxes/cell.ts'
import { createDemand } from '../../domain/sandboxes/demand.ts'
import type { Demand } from '../../domain/sandboxes/demand.ts'

/** Parts that are fixed when a blank cell is made. */
export interface BlankKind extends Pick<CellParts, 'cpuCount' | 'memoryMb' | 'runtime' | 'envd'> {
  /** Whether the template has a `sudo` to replace. */
  readonly hasSudo: boolean
}

export interface BlankCellPorts {
  /** A failure leaves nothing behind. */
  make(kind: BlankKind): Promise<Cell>
  erase(cell: Cell): Promise<void>
  isAlive(cell: Cell): boolean
  /** Whether the host has memory to spare. */
  hasRoom(): Promise<boolean>
  nowMs(): number
  onError(error: unknown): void
}

/** Blank cells of each kind in demand: ready ones, and those under way. */
export interface BlankSupplies {
  noteDemand(kind: BlankKind): void
  /** Returns a living blank cell, or one under way that no other request waits for. */
  take(kind: BlankKind): Promise<Cell | undefined>
  /** Starts to make cells until this many are ready or under way. */
  fill(kind: BlankKind, wanted: number): void
  /** Starts to make the cells that the demand calls for. */
  refill(): void
  /** Removes all ready cells. Returns whether there were any. */
  empty(): Promise<boolean>
  /** Removes ready cells beyond the demand. */
  trim(): Promise<void>
  count(): number
  /** Waits for all cells under way. */
  settle(): Promise<void>
}

interface Supply {
  readonly kind: BlankKind
  readonly demand: Demand
  readonly ready: Cell[]
  /** Cells under way that no request waits for. */
  readonly underway: Set<Promise<Cell | undefined>>
}

const makesAtOnce = 2

/** `limit` is the largest number of blank cells at a time. */
export function createBlankSupplies(parts: {
  readonly ports: BlankCellPorts
  readonly limit: number
  readonly isOff: () => boolean
  readonly onFailure: (error: unknown) => void
}): BlankSupplies {
  const { ports, limit, isOff } = parts
  const supplies = new Map<string, Supply>()
  const additions = new Set<Promise<void>>()
  const gate = limitConcurrency(makesAtOnce)
  const values = () => [...supplies.values()]
  const total = () =>
    values().reduce((sum, { ready, underway }) => sum + ready.length + underway.size, 0)

  function supplyOf(kind: BlankKind): Supply {
    const { cpuCount, memoryMb, runtime, envd, hasSudo } = kind
    const key = [cpuCount, memoryMb, runtime, envd, hasSudo].join('-')
    const found = supplies.get(key)
    if (found) return found
    const supply: Supply = { kind, demand: createDemand(0), ready: [], underway: new Set() }
    supplies.set(key, supply)
    return supply
  }

  async function makeOne(kind: BlankKind): Promise<Cell | undefined> {
    try {
      if (isOff() || !(await ports.hasRoom())) return undefined
      return await ports.make(kind)
    } catch (error) {
      parts.onFailure(error)
      return undefined
    }
  }

  /** Makes one cell. It becomes ready unless a request has claimed it meanwhile. */
  async function addOne({ kind, underway, ready }: Supply): Promise<void> {
    const making = gate(() => makeOne(kind))
    underway.add(making)
    const cell = await making
    const isUnclaimed = underway.delete(making)
    if (!cell || !isUnclaimed) return
    if (isOff()) await ports.erase(cell)
    else ready.push(cell)
  }

  function fill(supply: Supply, wanted: number): void {
    while (!isOff() && supply.ready.length + supply.underway.size < wanted && total() < limit) {
      const addition = addOne(supply)
        .catch(ports.onError)
        .finally(() => additions.delete(addition))
      additions.add(addition)
    }
  }

  return {
    noteDemand: (kind) => supplyOf(kind).demand.note(ports.nowMs()),
    fill: (kind, wanted) => fill(supplyOf(kind), wanted),

    async take(kind) {
      const { ready, underway } = supplyOf(kind)
      for (let cell = ready.shift(); cell; cell = ready.shift()) {
        if (ports.isAlive(cell)) return cell
        void ports.erase(cell).catch(ports.onError)
      }
      const [making] = underway
      if (making) underway.delete(making)
      return making
    },

    refill() {
      for (const supply of values()) fill(supply, supply.demand.level(ports.nowMs()))
    },

    async empty() {
      const cells = values().flatMap(({ ready }) => ready.splice(0))
      await Promise.all(cells.map(ports.erase))
      return cells.length > 0
    },

    async trim() {
      for (const [key, { demand, ready, underway }] of supplies) {
        const surplus = ready.splice(demand.level(ports.nowMs()))
        await Promise.all(surplus.map(ports.erase))
        const isUnused = ready.length + underway.size + demand.level(ports.nowMs()) === 0
        if (isUnused) supplies.delete(key)
      }
    },

    count: () => values().reduce((sum, { ready }) => sum + ready.length, 0),
    settle: async () => void (await Promise.all(additions)),
  }
}
