import type { NetworkRules } from '@atoll/contracts/network/rules'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'
import type { CellMaker } from './cell-maker.ts'
import type { IdentityOffers } from './identity-offers.ts'
import type { Pool, PoolSet } from './pool-set.ts'
import { createPrototypePreparation } from './prototype-preparation.ts'
import type { Prototypes } from './prototypes.ts'

export interface PoolFillerPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  /** Waits for envd and makes it load everything it will need. */
  prepare(cell: Cell): Promise<void>
  assignIdentity(cell: Cell, identity: Identity): Promise<void>
  freeze(cellId: string): Promise<void>
  setRules(slot: Slot, rules: NetworkRules | undefined): Promise<void>
  memoryBytes(cellId: string): Promise<number>
  /** Bytes that a snapshot takes on disk, memory included. */
  snapshotBytes(snapshotId: string): Promise<number>
  nowMs(): number
  onError(error: unknown): void
}

/** Fills the pools in the background, one cell at a time, and never while a request waits for a cell. */
export interface PoolFiller {
  /** Starts to fill unless the filler is already at work. */
  nudge(): void
  nudgeAfter(delayMs: number): void
  /** Cancels the prototypes of a removed template. */
  removeTemplate(templateId: string): void
  close(): Promise<void>
}

/** Programs in a copy of a snapshot run for a moment before it is frozen, and nobody has decided yet what they may reach. */
const noNetwork = { allowOut: [], denyOut: ['0.0.0.0/0'] }
/** Pause of a pool after a failure. An immediate retry would slow down waiting requests. */
const failurePauseMs = 5_000

export function createPoolFiller(parts: {
  readonly ports: PoolFillerPorts
  readonly pools: PoolSet
  readonly maker: CellMaker
  readonly prototypes: Prototypes
  readonly offers: IdentityOffers
  /** Cells of the pools that are frozen. */
  readonly frozen: Set<string>
  /** Limit for one cell, since a slow cell delays all others. */
  readonly patienceMs: number
  /** Whether requests wait for cells. */
  readonly isBusy: () => boolean
  readonly erase: (cell: Cell) => Promise<void>
}): PoolFiller {
  const { ports, pools, maker, offers, frozen, patienceMs } = parts
  let filling: Promise<void> | undefined
  let isClosed = false
  const preparation = createPrototypePreparation({
    prototypes: parts.prototypes,
    patienceMs,
    onSlowEnd(shape, failure) {
      const pool = pools.find(shape)
      if (failure && pool) pauseAfterFailure(pool, failure.error)
      nudge()
    },
  })
  const neediest = () =>
    pools.neediest(({ shape, snapshot }) => !snapshot && preparation.isSlow(shape))

  function nudge(): void {
    if (filling || isClosed || !neediest()) return
    filling = fill()
      .catch(ports.onError)
      .finally(() => {
        filling = undefined
        // Calls to `nudge` during the fill had no effect.
        if (!parts.isBusy()) nudge()
      })
  }

  function nudgeAfter(delayMs: number): void {
    setTimeout(nudge, delayMs).unref()
  }

  async function fill(): Promise<void> {
    while (!isClosed && !parts.isBusy()) {
      const pool = neediest()
      if (!pool) return
      try {
        await maker.checkHost()
        if (pool.snapshot) await addCopy(pool, pool.snapshot)
        else if (await preparation.isDoneSoon(pool.shape)) await addCell(pool)
      } catch (error) {
        pauseAfterFailure(pool, error)
      }
    }
  }

  /** Ignores a removed pool: its cancellation is not a failure. */
  function pauseAfterFailure(pool: Pool, error: unknown): void {
    if (isClosed || !pools.has(pool)) return
    // A full disk is already logged elsewhere.
    if (!(error instanceof Fault && error.reason === diskFull)) ports.onError(error)
    pool.pausedUntilMs = ports.nowMs() + failurePauseMs
    nudgeAfter(failurePauseMs)
  }

  async function addCell(pool: Pool): Promise<void> {
    const limit = AbortSignal.timeout(patienceMs)
    const made = await maker.start(await maker.make({ shape: pool.shape }), limit)
    const cell = { ...made, record: { ...made.record, phase: 'ready' as const } }
    const offer = offers.take()
    try {
      await addFrozen(pool, cell, { identity: offer?.identity })
      offer?.resolve(pool.shape)
    } catch (error) {
      if (offer) offers.putBack(offer)
      throw error
    }
  }

  /**
   * Its record stays in the phase `making`, so that no agent that is started later puts the cell, which has data of one
   * team, into the pool of its shape.
   */
  async function addCopy(pool: Pool, snapshot: NonNullable<Pool['snapshot']>): Promise<void> {
    if (snapshot.expectedBytes === undefined) {
      snapshot.expectedBytes = await ports.snapshotBytes(snapshot.snapshotId)
      // May be too large for the memory of all pools.
      return
    }
    const plan = { shape: pool.shape, from: snapshot.from, network: noNetwork }
    const { cell } = await maker.make(plan)
    // A frozen cell sends nothing, so a create need not wait until these rules are lifted.
    await addFrozen(pool, cell, { onFrozen: () => ports.setRules(cell.slot, undefined) })
  }

  /** A failure erases the cell. */
  async function addFrozen(
    pool: Pool,
    cell: Cell,
    {
      identity,
      onFrozen,
    }: { readonly identity?: Identity | undefined; readonly onFrozen?: () => Promise<void> },
  ): Promise<void> {
    const { cellId } = cell.record
    try {
      await ports.prepare(cell)
      if (identity) await ports.assignIdentity(cell, identity)
      await ports.freeze(cellId)
      frozen.add(cellId)
      await onFrozen?.()
      await ports.records.update(cell.record)
      const bytes = await ports.memoryBytes(cellId)
      if (!pools.has(pool)) throw new Error('the template or snapshot was removed meanwhile')
      pool.cells.push({ cell, bytes, preassignedAs: identity })
    } catch (error) {
      frozen.delete(cellId)
      await parts.erase(cell)
      throw error
    }
  }

  return {
    nudge,
    nudgeAfter,
    removeTemplate: preparation.removeTemplate,
    async close() {
      isClosed = true
      await preparation.close()
      await filling
    },
  }
}
