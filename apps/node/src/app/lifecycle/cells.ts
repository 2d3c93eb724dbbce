import { basename } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { randomHex, randomLabel } from '@atoll/kit/id'
import { cellPartsOf, shapeOf } from '../../domain/sandboxes/cell.ts'
import type { Cell, CellRecord, CellParts, Shape } from '../../domain/sandboxes/cell.ts'
import type { Disks } from '../../domain/host/disks.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { Snapshot, SnapshotPlace } from '../../domain/sandboxes/snapshot.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { BlankCells } from '../pools/blank-cells.ts'
import type { BlankKind } from '../pools/blank-supplies.ts'
import type { SlotPool } from '../pools/slot-pool.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

/** Makes and removes cells. Knows nothing about their use. */
export interface Cells {
  /** Boots a template or restores a snapshot; envd may not answer yet. A failure leaves nothing behind. */
  make(plan: CellPlan): Promise<Cell>
  /** Starts to make blank cells for restores of such cells that will follow soon. */
  expectRestores(parts: CellParts, count: number): Promise<void>
  /** Starts a cell that has a folder and a disk but no processes. A failure keeps the folder. */
  launch(record: CellRecord, options: LaunchOptions): Promise<Cell>
  /** Ends processes and mounts and returns the slot. Keeps the folder. */
  halt(cell: Cell): Promise<void>
  /** Does what `halt` does, in two parts that run at the same time. */
  beginHalt(cell: Cell): Halt
  erase(cell: Cell): Promise<void>
}

export interface Halt {
  readonly ended: Promise<void>
  readonly slotReturned: Promise<void>
}

export interface CellPlan {
  readonly shape: Shape
  /** Files to boot from instead of the shape's template. */
  readonly files?: TemplateFiles | undefined
  readonly from?: SavedState | undefined
  /** Snapshot of `from`, if it may have a warm pool of its own. */
  readonly snapshotId?: string | undefined
  /** A request waits for this cell: a blank cell may serve it, and it counts as demand for blank cells. */
  readonly isUrgent?: boolean
  /** Applied before the cell runs: restored processes run at once. */
  readonly network?: NetworkRules | undefined
  readonly signal?: AbortSignal | undefined
}

/** Parts of a cell whose state was saved, the release that wrote its memory, and the files. */
export interface SavedState extends SnapshotPlace {
  readonly snapshot: CellParts & Pick<Snapshot, 'memory'>
}

export interface LaunchOptions {
  readonly slot: Slot
  /** Folder of the memory to restore; absent: boot. */
  readonly memoryDir?: string | undefined
  /** Applied before the cell runs. */
  readonly network?: NetworkRules | undefined
  /** Whether the cell is a blank one, and has processes already. */
  readonly isBlank?: boolean
}

export interface CellPorts {
  readonly records: {
    create(record: CellRecord): Promise<void>
    update(record: CellRecord): Promise<void>
  }
  readonly runtime: Runtime
  readonly disks: Disks
  setRules(slot: Slot, rules: NetworkRules): Promise<void>
  mountRootfs(cell: CellRecord, image: string): Promise<Rootfs>
  /** Whether this layer or one below has a `sudo` to replace. */
  hasSudo(layer: string): Promise<boolean>
  /** Limits the growth of a disk that was just mounted. */
  admitDisk(disk: { readonly id: string; readonly sizeBytes: number }): Promise<void>
  bundleDir(cellId: string): string
  diskImage(cellId: string, name: string): string
  /** Makes the memory in a folder readable while `work` runs. */
  useMemory<T>(memoryDir: string, work: () => Promise<T>): Promise<T>
  /** Returns undefined when this node has no such template. */
  findTemplate(templateId: string): TemplateFiles | undefined
  /** Folder of the envd build for new cells. */
  readonly envdDir: string
  /** Returns the folder of any envd build by name. */
  findEnvd(name: string): Promise<string>
  /** Ends processes and mounts. Idempotent. */
  halt(cellId: string): Promise<void>
  /** Does what `halt` does, and removes the folder. */
  erase(cellId: string): Promise<void>
}

export interface TemplateFiles {
  /** Name of the topmost layer. */
  readonly layer: string
  /** Absent: the setup of the built-in template. */
  readonly setup?: Setup
}

export interface Rootfs {
  readonly path: string
  readonly hasSudo: boolean
}

interface Started {
  readonly process: ProcessIdentity
  readonly release: string
}

export function createCells({
  ports,
  slots,
  blanks,
}: {
  readonly ports: CellPorts
  readonly slots: SlotPool
  readonly blanks?: Pick<BlankCells, 'use' | 'giveUp' | 'expect'> | undefined
}): Cells {
  async function start(record: CellRecord, options: LaunchOptions): Promise<Started> {
    const { cellId, envd, disk } = record
    const rootfs = await ports.mountRootfs(record, ports.diskImage(cellId, disk))
    await ports.admitDisk({ id: cellId, sizeBytes: record.diskSizeMb * 1024 ** 2 })
    const request = {
      cell: record,
      slot: options.slot,
      rootfs: rootfs.path,
      hasSudo: rootfs.hasSudo,
      bundleDir: ports.bundleDir(cellId),
      envdDir: await ports.findEnvd(envd),
    }
    const { memoryDir, network, slot, isBlank = false } = options
    if (network) await ports.setRules(slot, network)
    const release = await ports.runtime.release()
    const process =
      memoryDir === undefined
        ? await ports.runtime.start(request)
        : await ports.useMemory(memoryDir, () => restorerFor(isBlank).restore(request, memoryDir))
    return { process, release }
  }

  function restorerFor(isBlank: boolean): Pick<Runtime, 'restore'> {
    const { runtime } = ports
    if (isBlank && !runtime.blanks) throw new Error(`${runtime.name} has no blank cells`)
    return (isBlank ? runtime.blanks : undefined) ?? runtime
  }

  /** Blank cells give their addresses back when all others are in use. */
  async function takeSlot(): Promise<Slot> {
    try {
      return await slots.take()
    } catch (error) {
      const isFull = error instanceof Fault && error.reason === 'no_address'
      if (!isFull || !(await blanks?.giveUp())) throw error
      return slots.take()
    }
  }

  /** Makes a cell with the processes of a blank one, or with new ones. */
  async function makeIn(
    blank: Cell | undefined,
    parts: CellParts,
    { from, network, signal }: CellPlan,
  ): Promise<Cell> {
    const isBlank = blank !== undefined
    const slot = blank?.slot ?? (await takeSlot())
    const record: CellRecord = {
      ...parts,
      cellId: blank?.record.cellId ?? newCellId(),
      phase: 'making',
      disk: 'disk.img',
      slotNumber: slot.number,
    }
    const memoryDir = from?.snapshot.memory === undefined ? undefined : from.memoryDir
    try {
      await (isBlank ? ports.records.update(record) : ports.records.create(record))
      await fillDisk(ports, record, from)
      const started = await start(record, { slot, memoryDir, network, isBlank })
      signal?.throwIfAborted()
      return { record: { ...record, ...started }, slot }
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await erase({ record, slot }).catch(() => {})
      throw error
    }
  }

  const kindOf = async (parts: CellParts): Promise<BlankKind> => ({
    ...parts,
    hasSudo: await ports.hasSudo(parts.layer),
  })

  async function erase({ record, slot }: Cell): Promise<void> {
    await Promise.all([ports.erase(record.cellId), slots.giveBack(slot)])
  }

  return {
    erase,

    async make(plan) {
      plan.signal?.throwIfAborted()
      const { from } = plan
      const parts = from ? cellPartsOf(from.snapshot) : freshParts(ports, plan)
      if (!blanks || !plan.isUrgent || from?.snapshot.memory === undefined) {
        return makeIn(undefined, parts, plan)
      }
      return blanks.use(await kindOf(parts), (blank) => makeIn(blank, parts, plan))
    },

    async expectRestores(parts, count) {
      blanks?.expect(await kindOf(parts), count)
    },

    async launch(record, options) {
      const started = await start(record, options)
      return { record: { ...record, ...started }, slot: options.slot }
    },

    async halt({ record, slot }) {
      await Promise.all([ports.halt(record.cellId), slots.giveBack(slot)])
    },

    beginHalt: ({ record, slot }) => ({
      ended: ports.halt(record.cellId),
      slotReturned: slots.giveBack(slot),
    }),
  }
}

function freshParts(
  { findTemplate, runtime, envdDir }: CellPorts,
  { shape, files = findTemplate(shape.templateId) }: CellPlan,
): CellParts {
  if (!files) {
    throw new Fault(
      'not_found',
      'template_not_found',
      `Template ${shape.templateId} does not exist on this node`,
    )
  }
  return {
    ...shapeOf(shape),
    ...files,
    runtime: runtime.name,
    envd: basename(envdDir),
    initToken: randomHex(32),
  }
}

async function fillDisk(
  { disks, diskImage }: CellPorts,
  { cellId, disk, diskSizeMb }: CellRecord,
  source: CellPlan['from'],
): Promise<void> {
  const image = diskImage(cellId, disk)
  if (!source) return disks.create(image, diskSizeMb)
  const copied = (await disks.sharesBlocks()) ? 0 : await disks.usedBytes(source.disk)
  using _room = disks.reserveSpace(copied, 'creating a sandbox')
  await disks.copy(source.disk, image)
}

export function newCellId(): string {
  return `c${randomLabel(20)}`
}
