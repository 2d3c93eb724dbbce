import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type { Disks } from '../../domain/host/disks.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SlotPool } from '../pools/slot-pool.ts'
import type { Cells } from './cells.ts'
import type { Claim } from './claim.ts'
import type { Releases } from './releases.ts'
import type { StartPaused } from './restore-paused.ts'

export interface BootPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  readonly disks: Disks
  diskImage(cellId: string, name: string): string
  /** Removes files in the cell's folder that do not belong to this record. */
  tidy(record: CellRecord): Promise<void>
  /** Starts the template's start command in a booted cell without waiting for it. */
  launchStartCommand(cell: Cell, accessToken: string | undefined): Promise<void>
}

/** Boots a paused sandbox from its files, in its own cell. */
export function createBootPaused(parts: {
  readonly ports: BootPorts
  readonly cells: Pick<Cells, 'launch' | 'halt'>
  readonly slots: SlotPool
  readonly claim: Claim
  readonly releases: Pick<Releases, 'finished'>
}): StartPaused {
  const { ports, cells, slots, claim, releases } = parts

  async function undo(paused: PausedSandbox, cell: Cell | undefined): Promise<void> {
    if (cell) {
      await cells.halt(cell)
      await ports.records.update(paused)
    }
    await ports.tidy(paused)
  }

  return async (paused, owner, request) => {
    const { memory: _memory, keptGeneration: _kept, keptId: _keptId, ...rest } = paused
    const { network } = owner
    let cell: Cell | undefined
    let sandbox: RunningSandbox
    await releases.finished(owner.sandboxId)
    try {
      const disk = await diskToBoot(ports, paused)
      const slot = await slots.take()
      const slotNumber = slot.number
      cell = { record: { ...rest, owner, disk, slotNumber }, slot }
      await ports.records.update({ ...paused, phase: 'resuming', slotNumber })
      cell = await cells.launch(cell.record, { slot, network })
      sandbox = await claim.assignAndStart({ record: { ...cell.record, owner }, slot }, request)
      await ports.launchStartCommand(sandbox, request.accessToken)
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await undo(paused, cell).catch(() => {})
      throw error
    }
    // Cannot be undone: the sandbox runs, and parts of its paused state may already be removed.
    await ports.tidy(sandbox.record).catch(() => {})
    return sandbox
  }
}

/**
 * Returns the disk to boot with. When memory is kept, this is a copy: the original must stay as the memory knows it
 * until the sandbox runs. A disk that a backup is reading must not change either.
 */
async function diskToBoot(
  { disks, diskImage }: BootPorts,
  { cellId, disk, memory }: PausedSandbox,
): Promise<string> {
  const image = diskImage(cellId, disk)
  await disks.awaitUnused(image)
  if (memory === undefined && !(await disks.isLinked(image))) return disk
  const used = await disks.usedBytes(image)
  const isShared = await disks.sharesBlocks()
  using _room = disks.reserveSpace(isShared ? 0 : used, 'resuming the sandbox')
  const copy = disk === 'disk.img' ? 'disk-2.img' : 'disk.img'
  await disks.copy(image, diskImage(cellId, copy))
  return copy
}
