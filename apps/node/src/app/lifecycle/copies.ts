import { cellPartsOf, memoryWriter } from '../../domain/sandboxes/cell.ts'
import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type { Disks } from '../../domain/host/disks.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { Snapshot, SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import type { Freezes } from './freezes.ts'
import type { Runtime, SaveOptions } from '../../domain/sandboxes/runtime.ts'

/** Copies the state of a running cell. */
export interface Copies {
  /** Freezes the cell during the copy and thaws it afterwards, also after a failure. */
  snapshot(cell: Cell, plan: CopyPlan, store: Pick<SnapshotStore, 'add'>): Promise<Snapshot>
  /**
   * Writes the memory next to the disk, then calls `seal` to make the pause final. Leaves the cell frozen, to be
   * halted. Thaws the cell after a failure.
   */
  keepMemory(cell: Cell, seal: () => Promise<void>): Promise<void>
}

export interface CopyPlan {
  readonly snapshotId: string
  /** Whether the snapshot is on stable storage in the end. */
  readonly isDurable: boolean
}

export interface CopyPorts {
  readonly runtime: Runtime
  readonly disks: Disks
  diskImage(cellId: string, name: string): string
  memoryDir(cellId: string): string
  /** Memory in use by the cell's processes. */
  memoryBytes(cellId: string): Promise<number>
  syncDisk(cellId: string): Promise<void>
  flushFolder(dir: string): Promise<void>
  removeFolder(dir: string): Promise<void>
  /** Closes outgoing connections of a sandbox that the peer has not answered yet. */
  endHalfOpen(slot: Slot): Promise<void>
}

export function createCopies(ports: CopyPorts, freezes: Freezes): Copies {
  const { runtime, disks } = ports
  const saveMemory = createSaveMemory(ports)

  return {
    async snapshot(cell, { snapshotId, isDurable }, store) {
      const { record } = cell
      const image = ports.diskImage(record.cellId, record.disk)
      const diskRoom = (await disks.sharesBlocks()) ? 0 : await disks.usedBytes(image)
      const memoryBytes = await findMemoryBytes(ports, record)
      using _room = disks.reserveSpace(diskRoom + memoryBytes, 'copying the sandbox')
      const memory = await runtime.memoryFormat()
      const snapshot = describeSnapshot(snapshotId, record, memory)
      await store.add(snapshot, async (place) => {
        try {
          await freezes.freeze(cell)
          const flushFiles = () => ports.syncDisk(record.cellId)
          if (memory === undefined) await flushFiles()
          else await saveMemory(cell, place.memoryDir, { memoryBytes, flushFiles })
          await disks.copy(image, place.disk)
        } finally {
          await freezes.thaw(cell)
        }
        if (!isDurable) return
        const memoryFlush = memory === undefined ? [] : [ports.flushFolder(place.memoryDir)]
        await Promise.all([disks.flush(place.disk), ...memoryFlush])
      })
      return snapshot
    },

    async keepMemory(cell, seal) {
      const { record } = cell
      const memoryDir = ports.memoryDir(record.cellId)
      const memoryBytes = await findMemoryBytes(ports, record)
      using _room = disks.reserveSpace(memoryBytes, 'pausing the sandbox')
      try {
        // Runtimes do not overwrite files that a resume may have left.
        await ports.removeFolder(memoryDir)
        await freezes.freeze(cell)
        // The record promises disk and memory, so both must be on stable storage before the record is written.
        const flushDisk = async () => {
          await ports.syncDisk(record.cellId)
          await disks.flush(ports.diskImage(record.cellId, record.disk))
        }
        // While the image is inspected. What a repair changes afterwards is flushed below.
        const flushFiles = async () => {
          await Promise.all([flushDisk(), ports.flushFolder(memoryDir)])
        }
        await saveMemory(cell, memoryDir, { memoryBytes, flushFiles })
        await ports.flushFolder(memoryDir)
        await seal()
      } catch (error) {
        // Rethrow the original error; cleanup errors are secondary.
        await Promise.allSettled([freezes.thaw(cell), ports.removeFolder(memoryDir)])
        throw error
      }
    },
  }
}

function createSaveMemory(ports: CopyPorts) {
  return (
    { record, slot }: Cell,
    memoryDir: string,
    options: Required<Pick<SaveOptions, 'memoryBytes' | 'flushFiles'>>,
  ) =>
    ports.runtime.saveMemory(record.cellId, memoryDir, {
      ...options,
      endHalfOpen: () => ports.endHalfOpen(slot),
    })
}

/** Returns the space that the memory of a cell takes; 0 if the runtime cannot save memory. */
async function findMemoryBytes(
  { runtime, memoryBytes }: CopyPorts,
  { cellId }: CellRecord,
): Promise<number> {
  return (await runtime.memoryFormat()) === undefined ? 0 : memoryBytes(cellId)
}

/** `memory` is the format of the runtime; undefined: the snapshot has files only. */
function describeSnapshot(
  snapshotId: string,
  record: CellRecord,
  memory: string | undefined,
): Snapshot {
  return {
    ...cellPartsOf(record),
    snapshotId,
    envVars: record.owner?.envVars ?? {},
    ...(record.owner?.authority && { authority: record.owner.authority }),
    ...(memory !== undefined && { memory: memoryWriter(record, memory) }),
  }
}
