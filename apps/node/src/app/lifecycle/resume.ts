import type { Cell, CellRecord, Owner } from '../../domain/sandboxes/cell.ts'
import type { Disks } from '../../domain/host/disks.ts'
import { withAuthority } from '../../domain/network/network-rules.ts'
import type { Authority, Ingress, NetworkRules } from '@atoll/contracts/network/rules'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Cells } from './cells.ts'
import type { Claim, ClaimRequest } from './claim.ts'
import type { SlotPool } from '../pools/slot-pool.ts'
import { checkReadable } from './check-readable.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

export interface ResumeRequest extends ClaimRequest {
  readonly sandboxId: string
  /** Boot from the files, without restoring memory. */
  readonly boot: boolean
  /** New generation of the sandbox. Absent: unchanged. */
  readonly generation?: number
  readonly network?: NetworkRules
  readonly ingress?: Ingress
}

export interface ResumePorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  readonly runtime: Runtime
  readonly disks: Disks
  diskImage(cellId: string, name: string): string
  memoryDir(cellId: string): string
  /** Removes files in the cell's folder that do not belong to this record. */
  tidy(record: CellRecord): Promise<void>
  createAuthority(): Authority
  /** Starts the template's start command in a booted cell without waiting for it. */
  launchStartCommand(cell: Cell, accessToken: string | undefined): Promise<void>
}

/** Resumes a paused sandbox. A failure leaves the sandbox paused, with all its state. */
export type Resume = (paused: PausedSandbox, request: ResumeRequest) => Promise<RunningSandbox>

export function createResume(parts: {
  readonly ports: ResumePorts
  readonly cells: Cells
  readonly slots: SlotPool
  readonly claim: Claim
}): Resume {
  const { ports, cells, slots, claim } = parts

  /**
   * Returns the disk to resume with. When memory is kept, this is a copy: the original must stay as the memory knows it
   * until the sandbox runs. A disk that a backup is reading must not change either.
   */
  async function diskForResume({ cellId, disk, memory }: PausedSandbox): Promise<string> {
    const image = ports.diskImage(cellId, disk)
    if (memory === undefined && !(await ports.disks.isLinked(image))) return disk
    const used = await ports.disks.usedBytes(image)
    const isShared = await ports.disks.sharesBlocks()
    using _room = ports.disks.reserveSpace(isShared ? 0 : used, 'resuming the sandbox')
    const copy = disk === 'disk.img' ? 'disk-2.img' : 'disk.img'
    await ports.disks.copy(image, ports.diskImage(cellId, copy))
    return copy
  }

  /** Returns the owner of the resumed sandbox, with the settings of the request. */
  function ownerFor({ owner }: PausedSandbox, request: ResumeRequest): Owner {
    const { ingress = owner.ingress } = request
    const { network, ...trusted } = withAuthority(
      request.network ?? owner.network,
      owner.authority,
      ports.createAuthority,
    )
    const policy = { ...(network && { network }), ...(ingress && { ingress }) }
    return { ...owner, ...policy, ...trusted }
  }

  return async (paused, request) => {
    const { memory, ...rest } = paused
    const restoresMemory = memory !== undefined && !request.boot
    const needed = restoresMemory ? paused : { runtime: paused.runtime }
    await checkReadable(
      ports.runtime,
      needed,
      ': connect with memory: false to boot from its files',
    )
    const owner = ownerFor(paused, request)
    const { network } = owner
    let cell: Cell | undefined
    let sandbox: RunningSandbox
    try {
      const disk = await diskForResume(paused)
      const slot = await slots.take()
      const slotNumber = slot.number
      cell = { record: { ...rest, owner, disk, slotNumber }, slot }
      await ports.records.update({ ...paused, phase: 'resuming', slotNumber })
      const memoryDir = restoresMemory ? ports.memoryDir(paused.cellId) : undefined
      cell = await cells.launch(cell.record, { slot, memoryDir, network })
      sandbox = await claim.assignAndStart({ record: { ...cell.record, owner }, slot }, request)
      if (!restoresMemory) await ports.launchStartCommand(sandbox, request.accessToken)
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await undo(paused, cell).catch(() => {})
      throw error
    }
    // Cannot be undone: the sandbox runs, and parts of its paused state may already be removed.
    await ports.tidy(sandbox.record).catch(() => {})
    return sandbox
  }

  async function undo(paused: PausedSandbox, cell: Cell | undefined): Promise<void> {
    if (cell) {
      await cells.halt(cell)
      await ports.records.update(paused)
    }
    await ports.tidy(paused)
  }
}
