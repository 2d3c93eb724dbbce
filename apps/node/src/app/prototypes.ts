import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { shapeKey, shapeOf } from '../domain/cell.ts'
import type { Cell, Shape } from '../domain/cell.ts'
import type { Snapshot, SnapshotStore } from '../domain/snapshot.ts'
import type { CellPlan, Cells } from './cells.ts'

/**
 * One snapshot for each shape, taken when envd was ready and nobody had spoken to it: a new sandbox goes on from there,
 * which is quicker than to boot. They can be thrown away at any time.
 */
export interface Prototypes {
  /** Undefined when there is none, or none is of use. */
  find(shape: Shape): Promise<CellPlan['from']>
  /** Makes one where memory is kept and there is none. */
  ensure(shape: Shape): Promise<void>
  /** One that fails to start is of no use. */
  discard(shape: Shape): Promise<void>
  /** Those there are, once what is of no use any more has been removed. */
  open(): Promise<readonly Shape[]>
}

export function createPrototypes(parts: {
  readonly cells: Cells
  readonly store: SnapshotStore
  /** Undefined where the runtime keeps no memory. */
  readonly memoryFormat: string | undefined
  readonly layer: string
  readonly envdDir: string
  readonly save: SaveSnapshot
}): Prototypes {
  const { cells, store, memoryFormat } = parts
  const known = new Map<string, Snapshot>()
  const making = new Map<string, Promise<void>>()
  const idOf = (shape: Shape) =>
    createHash('sha256')
      .update(JSON.stringify([shapeKey(shape), parts.layer, basename(parts.envdDir), memoryFormat]))
      .digest('hex')
      .slice(0, 32)

  async function make(shape: Shape): Promise<void> {
    const snapshotId = idOf(shape)
    const cell = await cells.make({ shape })
    try {
      known.set(snapshotId, await parts.save(cell, snapshotId, store))
    } finally {
      await cells.erase(cell)
    }
  }

  return {
    async find(shape) {
      const snapshot = known.get(idOf(shape))
      return snapshot && { snapshot, ...store.place(snapshot.snapshotId) }
    },

    async ensure(shape) {
      const id = idOf(shape)
      if (memoryFormat === undefined || known.has(id)) return
      const underway = making.get(id) ?? make(shape).finally(() => making.delete(id))
      making.set(id, underway)
      await underway
    },

    async discard(shape) {
      known.delete(idOf(shape))
      await store.remove(idOf(shape))
    },

    async open() {
      await store.sweep()
      for (const snapshot of await store.list()) {
        if (snapshot.snapshotId === idOf(snapshot)) known.set(snapshot.snapshotId, snapshot)
        else await store.remove(snapshot.snapshotId)
      }
      return [...known.values()].map(shapeOf)
    },
  }
}

/** Copies a cell whose envd has been made ready; it stands still meanwhile. */
export type SaveSnapshot = (
  cell: Cell,
  snapshotId: string,
  store: SnapshotStore,
) => Promise<Snapshot>
