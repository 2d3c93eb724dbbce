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
import type { SlotPool } from '../pools/slot-pool.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

/** Makes and removes cells. Knows nothing about their use. */
export interface Cells {
  /** Boots a template or restores a snapshot; envd may not answer yet. A failure leaves nothing behind. */
  make(plan: CellPlan): Promise<Cell>
  /** Starts a cell that has a folder and a disk but no processes. A failure keeps the folder. */
  launch(record: CellRecord, options: LaunchOptions): Promise<Cell>
  /** Ends processes and mounts and returns the slot. Keeps the folder. */
  halt(cell: Cell): Promise<void>
  erase(cell: Cell): Promise<void>
}

export interface CellPlan {
  readonly shape: Shape
  /** Files to boot from instead of the shape's template. */
  readonly files?: TemplateFiles | undefined
  readonly from?: (SnapshotPlace & { readonly snapshot: Snapshot }) | undefined
  /** Applied before the cell runs: restored processes run at once. */
  readonly network?: NetworkRules | undefined
  readonly signal?: AbortSignal | undefined
}

export interface LaunchOptions {
  readonly slot: Slot
  /** Folder of the memory to restore; absent: boot. */
  readonly memoryDir?: string | undefined
  /** Applied before the cell runs. */
  readonly network?: NetworkRules | undefined
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
}: {
  readonly ports: CellPorts
  readonly slots: SlotPool
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
    const { memoryDir, network, slot } = options
    if (network) await ports.setRules(slot, network)
    const release = await ports.runtime.release()
    const process =
      memoryDir === undefined
        ? await ports.runtime.start(request)
        : await ports.useMemory(memoryDir, () => ports.runtime.restore(request, memoryDir))
    return { process, release }
  }

  function freshMakings(shape: Shape, files = ports.findTemplate(shape.templateId)): CellParts {
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
      runtime: ports.runtime.name,
      envd: basename(ports.envdDir),
      initToken: randomHex(32),
    }
  }

  async function fill({ cellId, disk, diskSizeMb }: CellRecord, source: CellPlan['from']) {
    const image = ports.diskImage(cellId, disk)
    if (!source) return ports.disks.create(image, diskSizeMb)
    const { disks } = ports
    const copied = (await disks.sharesBlocks()) ? 0 : await disks.usedBytes(source.disk)
    using _room = disks.reserveSpace(copied, 'creating a sandbox')
    await disks.copy(source.disk, image)
  }

  return {
    async make({ shape, files, from, network, signal }) {
      signal?.throwIfAborted()
      const parts = from ? cellPartsOf(from.snapshot) : freshMakings(shape, files)
      const slot = await slots.take()
      const record: CellRecord = {
        ...parts,
        cellId: `c${randomLabel(20)}`,
        phase: 'making',
        disk: 'disk.img',
        slotNumber: slot.number,
      }
      const memoryDir = from?.snapshot.memory === undefined ? undefined : from.memoryDir
      try {
        await ports.records.create(record)
        await fill(record, from)
        const started = await start(record, { slot, memoryDir, network })
        signal?.throwIfAborted()
        return { record: { ...record, ...started }, slot }
      } catch (error) {
        // Rethrow the original error; cleanup errors are secondary.
        await this.erase({ record, slot }).catch(() => {})
        throw error
      }
    },

    async launch(record, options) {
      const started = await start(record, options)
      return { record: { ...record, ...started }, slot: options.slot }
    },

    async halt({ record, slot }) {
      await Promise.all([ports.halt(record.cellId), slots.giveBack(slot)])
    },

    async erase({ record, slot }) {
      await Promise.all([ports.erase(record.cellId), slots.giveBack(slot)])
    },
  }
}
