import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Disks } from '../../domain/host/disks.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type { Identity } from '../../domain/sandboxes/sandbox.ts'
import type { CellMaker } from './cell-maker.ts'
import type { IdentityOffers } from './identity-offers.ts'
import type { Pool, PoolSet, SnapshotSource } from './pool-set.ts'

export interface PoolCellPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  /** Waits for envd and makes it load everything it will need. */
  prepare(cell: Cell): Promise<void>
  assignIdentity(cell: Cell, identity: Identity): Promise<void>
  freeze(cellId: string): Promise<void>
  setRules(slot: Slot, rules: NetworkRules | undefined): Promise<void>
  /** Removes the records of what was reached, or denied, from this slot. */
  forgetConnections(slot: Slot): Promise<void>
  memoryBytes(cellId: string): Promise<number>
  readonly disks: Pick<Disks, 'sharesBlocks' | 'usedBytes'>
  /** Bytes that a snapshot takes on disk, memory included. */
  snapshotBytes(snapshotId: string): Promise<number>
}

export interface PoolCellParts {
  readonly ports: PoolCellPorts
  readonly pools: PoolSet
  readonly maker: CellMaker
  readonly offers: IdentityOffers
  /** Cells of the pools that are frozen. */
  readonly frozen: Set<string>
  /** Limit for one cell, since a slow cell delays all others. */
  readonly patienceMs: number
  readonly erase: (cell: Cell) => Promise<void>
}

/** Adds frozen cells to the pools. */
export interface PoolCells {
  addCell(pool: Pool): Promise<void>
  /** Adds a copy of the pool's snapshot. The first call only finds out how large a copy may be. */
  addCopy(pool: Pool, snapshot: SnapshotSource): Promise<void>
}

/** Rules until the programs in a copy of a snapshot are frozen: what they may reach is not decided yet. */
const noNetwork = { allowOut: [], denyOut: ['0.0.0.0/0'] }

export function createPoolCells(parts: PoolCellParts): PoolCells {
  const { ports, pools, maker, offers, frozen } = parts

  /** A failure erases the cell. */
  async function addFrozen(
    pool: Pool,
    cell: Cell,
    { identity, onFrozen, diskBytes = 0 }: Steps,
  ): Promise<void> {
    const { cellId } = cell.record
    try {
      await ports.prepare(cell)
      if (identity) await ports.assignIdentity(cell, identity)
      await ports.freeze(cellId)
      frozen.add(cellId)
      await onFrozen?.()
      await ports.records.update(cell.record)
      const bytes = (await ports.memoryBytes(cellId)) + diskBytes
      if (!pools.has(pool)) throw new Error('the template or snapshot was removed meanwhile')
      pool.cells.push({ cell, bytes, preassignedAs: identity })
    } catch (error) {
      frozen.delete(cellId)
      await parts.erase(cell)
      throw error
    }
  }

  return {
    async addCell(pool) {
      const limit = AbortSignal.timeout(parts.patienceMs)
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
    },

    async addCopy(pool, snapshot) {
      if (snapshot.expectedBytes === undefined) {
        snapshot.expectedBytes = await ports.snapshotBytes(snapshot.snapshotId)
        return
      }
      // The record stays in the phase `making`: in the phase `ready`, an agent that is started later would put this cell,
      // which has data of one team, into the pool of its shape.
      const plan = { shape: pool.shape, from: snapshot.from, network: noNetwork }
      const diskBytes = await diskBytesOf(ports, snapshot)
      const { cell } = await maker.make(plan)
      // A frozen cell sends nothing, so a create need not wait until these rules are lifted.
      const onFrozen = () => endNoNetwork(ports, cell.slot)
      await addFrozen(pool, cell, { onFrozen, diskBytes })
    },
  }
}

/** Also removes the records of what the copy tried to reach until now: the sandbox that it becomes did not. */
async function endNoNetwork(ports: PoolCellPorts, slot: Slot): Promise<void> {
  await ports.setRules(slot, undefined)
  await ports.forgetConnections(slot)
}

/** A copy that shares no blocks with the snapshot takes space until it is used. It counts like memory, and so is bounded. */
async function diskBytesOf({ disks }: PoolCellPorts, { from }: SnapshotSource): Promise<number> {
  return (await disks.sharesBlocks()) ? 0 : disks.usedBytes(from.disk)
}

interface Steps {
  /** Space that the cell takes on the disk of the host. */
  readonly diskBytes?: number
  readonly identity?: Identity | undefined
  readonly onFrozen?: () => Promise<void>
}
