import type { Slot } from '../../domain/network/slot.ts'
import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type { BlankRuntime } from '../../domain/sandboxes/runtime.ts'
import { newCellId } from '../lifecycle/cells.ts'
import type { CellPorts } from '../lifecycle/cells.ts'
import type { BlankKind } from './blank-supplies.ts'
import type { SlotPool } from './slot-pool.ts'

export interface BlankCellMaker {
  /** Makes a blank cell. A failure leaves nothing behind. */
  make(kind: BlankKind): Promise<Cell>
  erase(cell: Cell): Promise<void>
}

export function createBlankCellMaker(parts: {
  readonly ports: Pick<CellPorts, 'records' | 'bundleDir' | 'findEnvd' | 'erase'>
  readonly slots: SlotPool
  readonly blanks: BlankRuntime
}): BlankCellMaker {
  const { ports, slots, blanks } = parts

  async function erase({ record, slot }: Cell): Promise<void> {
    await Promise.all([ports.erase(record.cellId), slots.giveBack(slot)])
  }

  return {
    erase,
    async make(kind) {
      const slot = await slots.take()
      const record = describe(kind, slot)
      try {
        await ports.records.create(record)
        const process = await blanks.create({
          cell: record,
          slot,
          rootfs: '',
          hasSudo: kind.hasSudo,
          bundleDir: ports.bundleDir(record.cellId),
          envdDir: await ports.findEnvd(kind.envd),
        })
        return { record: { ...record, process }, slot }
      } catch (error) {
        // Rethrow the original error; cleanup errors are secondary.
        await erase({ record, slot }).catch(() => {})
        throw error
      }
    },
  }
}

/** Template, disk size and token are those of the restored cell, which are not known yet. */
function describe({ cpuCount, memoryMb, runtime, envd }: BlankKind, slot: Slot): CellRecord {
  return {
    ...{ cpuCount, memoryMb, runtime, envd },
    templateId: '',
    layer: '',
    diskSizeMb: 0,
    initToken: '',
    cellId: newCellId(),
    phase: 'making',
    disk: 'disk.img',
    slotNumber: slot.number,
  }
}
