import { makingsOf, writerOf } from '../domain/cell.ts'
import type { Cell, CellRecord } from '../domain/cell.ts'
import type { Disks } from '../domain/disks.ts'
import type { Runtime } from '../domain/sandbox.ts'
import type { Slot } from '../domain/slot.ts'
import type { Snapshot, SnapshotStore } from '../domain/snapshot.ts'
import type { Standstills } from './standstills.ts'

/** Keeps what a running cell is at one moment. */
export interface Copies {
  /** The cell stands still meanwhile and then goes on, also after a failure. */
  snapshot(cell: Cell, snapshotId: string, store: SnapshotStore): Promise<Snapshot>
  /**
   * Writes memory beside the disk, lets `seal` make that final, and leaves the cell standing still, for it to be halted;
   * after a failure it goes on.
   */
  keepMemory(cell: Cell, seal: () => Promise<void>): Promise<void>
}

export interface CopyPorts {
  readonly runtime: Runtime
  readonly disks: Disks
  diskImage(cellId: string, name: string): string
  memoryDir(cellId: string): string
  /** What its processes have in memory now. */
  memoryBytes(cellId: string): Promise<number>
  syncDisk(cellId: string): Promise<void>
  flushFolder(dir: string): Promise<void>
  removeFolder(dir: string): Promise<void>
  /** Ends what a sandbox has asked to be connected to without an answer. */
  endHalfOpen(slot: Slot): Promise<void>
}

export function createCopies(ports: CopyPorts, standstills: Standstills): Copies {
  const { runtime, disks } = ports

  async function memoryRoom({ cellId }: CellRecord): Promise<number> {
    return (await runtime.memoryFormat()) === undefined ? 0 : ports.memoryBytes(cellId)
  }

  function saveMemory({ record, slot }: Cell, memoryDir: string): Promise<void> {
    return runtime.saveMemory(record.cellId, memoryDir, () => ports.endHalfOpen(slot))
  }

  return {
    async snapshot(cell, snapshotId, store) {
      const { record } = cell
      const image = ports.diskImage(record.cellId, record.disk)
      const diskRoom = (await disks.sharesBlocks()) ? 0 : await disks.usedBytes(image)
      using _room = disks.holdRoom(diskRoom + (await memoryRoom(record)), 'copying the sandbox')
      const memory = await runtime.memoryFormat()
      const snapshot: Snapshot = {
        ...makingsOf(record),
        snapshotId,
        envVars: record.owner?.envVars ?? {},
        ...(record.owner?.authority && { authority: record.owner.authority }),
        ...(memory !== undefined && { memory: writerOf(record, memory) }),
      }
      await store.add(snapshot, async (place) => {
        try {
          await standstills.begin(cell)
          if (memory !== undefined) await saveMemory(cell, place.memoryDir)
          await ports.syncDisk(record.cellId)
          await disks.copy(image, place.disk)
        } finally {
          await standstills.end(cell)
        }
        await disks.flush(place.disk)
        if (memory !== undefined) await ports.flushFolder(place.memoryDir)
      })
      return snapshot
    },

    async keepMemory(cell, seal) {
      const { record } = cell
      const memoryDir = ports.memoryDir(record.cellId)
      using _room = disks.holdRoom(await memoryRoom(record), 'pausing the sandbox')
      try {
        // Runtimes do not write over what a resume may have left.
        await ports.removeFolder(memoryDir)
        await standstills.begin(cell)
        await saveMemory(cell, memoryDir)
        await ports.syncDisk(record.cellId)
        // The record promises the disk and the memory, so both reach the host's disk before the record does.
        await disks.flush(ports.diskImage(record.cellId, record.disk))
        await ports.flushFolder(memoryDir)
        await seal()
      } catch (error) {
        // The first reason is the one to tell.
        await Promise.allSettled([standstills.end(cell), ports.removeFolder(memoryDir)])
        throw error
      }
    },
  }
}
