import type { CellRecord, Owner } from '../../domain/sandboxes/cell.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Cells } from './cells.ts'
import type { Claim, ClaimRequest } from './claim.ts'
import type { Releases } from './releases.ts'
import type { SupersededCells } from './superseded-cells.ts'

export interface RestorePorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  diskImage(cellId: string, name: string): string
  memoryDir(cellId: string): string
}

/** Starts a paused sandbox. A failure leaves the sandbox paused, with all its state. */
export type StartPaused = (
  paused: PausedSandbox,
  owner: Owner,
  request: ClaimRequest,
) => Promise<RunningSandbox>

/**
 * Restores the memory in a new cell, with a copy of the disk. The paused cell stays as it is until the sandbox runs.
 * After a crash in between, the start of the node keeps the running one.
 */
export function createRestorePaused(parts: {
  readonly ports: RestorePorts
  readonly cells: Pick<Cells, 'make' | 'erase'>
  readonly claim: Claim
  readonly superseded: Pick<SupersededCells, 'retire'>
  readonly releases: Pick<Releases, 'finished'>
}): StartPaused {
  const { ports, cells, claim, superseded, releases } = parts

  async function restore(
    paused: PausedSandbox,
    owner: Owner,
    request: ClaimRequest,
  ): Promise<RunningSandbox> {
    const { cellId, disk } = paused
    const from = {
      snapshot: paused,
      disk: ports.diskImage(cellId, disk),
      memoryDir: ports.memoryDir(cellId),
    }
    const { network } = owner
    const { signal } = request
    // A crash must not lose the new generation. Nothing else of the record changes.
    await ports.records.update({ ...paused, phase: 'resuming' })
    const cell = await cells.make({ shape: paused, from, network, signal, isUrgent: true })
    try {
      const record = { ...cell.record, owner }
      await ports.records.update(record)
      return await claim.assignAndStart({ record, slot: cell.slot }, request)
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await cells.erase(cell).catch(() => {})
      throw error
    }
  }

  return async (paused, owner, request) => {
    try {
      const sandbox = await restore(paused, owner, request)
      // The release works on the folder of the paused cell.
      await releases.finished(owner.sandboxId)
      await superseded.retire(owner.sandboxId, paused.cellId)
      return sandbox
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await ports.records.update(paused).catch(() => {})
      throw error
    }
  }
}
