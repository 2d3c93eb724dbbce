import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import { memoryWriter } from '../../domain/sandboxes/cell.ts'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import { diskWriteLimitMs } from '../../domain/host/disks.ts'
import type { Disks } from '../../domain/host/disks.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Cells } from './cells.ts'
import type { Copies } from './copies.ts'
import type { SandboxEvents } from './events.ts'
import type { SandboxRegistry } from './sandbox-registry.ts'
import type { SupersededCells } from './superseded-cells.ts'

export interface PausePorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  readonly runtime: Runtime
  readonly disks: Disks
  diskImage(cellId: string, name: string): string
  /** Removes files in the cell's folder that do not belong to this record. */
  tidy(record: CellRecord): Promise<void>
}

/** Pauses a running sandbox. Returns once its state is durable. A failure leaves the sandbox running. */
export type Pause = (
  sandbox: RunningSandbox,
  keepMemory: boolean,
) => Promise<{
  readonly paused: PausedSandbox
  /** Ends the processes and mounts of the sandbox, returns its slot and flushes its disk. */
  release(): Release
}>

export interface Release {
  /** Processes, mounts and unneeded files are gone. Never fails. */
  readonly ended: Promise<void>
  readonly finished: Promise<void>
}

export function createPause(parts: {
  readonly ports: PausePorts
  readonly cells: Pick<Cells, 'beginHalt'>
  readonly copies: Pick<Copies, 'keepMemory'>
  readonly registry: SandboxRegistry
  readonly events: SandboxEvents
  readonly superseded: Pick<SupersededCells, 'clear'>
}): Pause {
  const { ports, copies, registry, events, superseded } = parts
  const { records, runtime } = ports

  /** Once the record is written, the sandbox is paused, even if the agent crashes. */
  async function writeState(
    sandbox: RunningSandbox,
    paused: PausedSandbox,
    keepMemory: boolean,
  ): Promise<void> {
    const { sandboxId } = sandbox.record.owner
    const seal = () => records.update(paused)
    registry.pausing.add(sandboxId)
    events.pausing(sandboxId)
    try {
      await (keepMemory ? copies.keepMemory(sandbox, seal) : seal())
    } catch (error) {
      events.started(sandbox)
      throw error
    } finally {
      registry.pausing.delete(sandboxId)
    }
  }

  return async (sandbox, keepMemory) => {
    const { record } = sandbox
    const { sandboxId } = record.owner
    const format = await runtime.memoryFormat()
    if (keepMemory && format === undefined) throw memoryNotKept(runtime)
    const { process: _process, slotNumber: _slot, ...rest } = record
    const memory =
      keepMemory && format !== undefined ? { memory: memoryWriter(record, format) } : {}
    const paused: PausedSandbox = { ...rest, ...memory, ...contentOf(record), phase: 'paused' }
    await superseded.clear(sandboxId)
    await writeState(sandbox, paused, keepMemory)
    registry.running.delete(sandboxId)
    registry.paused.set(sandboxId, paused)
    events.paused(sandboxId)
    const release = () => beginRelease(parts, sandbox, paused)
    if (keepMemory) return { paused, release }
    // Nothing was flushed before the record was written: the unmount does that.
    await release().finished
    const nothing = Promise.resolve()
    return { paused, release: () => ({ ended: nothing, finished: nothing }) }
  }
}

function beginRelease(
  { ports, cells }: { readonly ports: PausePorts; readonly cells: Pick<Cells, 'beginHalt'> },
  sandbox: RunningSandbox,
  paused: PausedSandbox,
): Release {
  const halt = cells.beginHalt(sandbox)
  // The next operation may write to the folder, so the folder is tidied first.
  const ended = halt.ended.then(() => ports.tidy(paused))
  const finish = async () => {
    // Neither part stops the other one.
    const results = await Promise.allSettled([ended, halt.slotReturned])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    const image = ports.diskImage(paused.cellId, paused.disk)
    // A pause with memory has written the disk while the sandbox was frozen. Otherwise the end of the mount writes it.
    if (paused.memory === undefined) await ports.disks.awaitUnused(image, diskWriteLimitMs)
    await ports.disks.flush(image)
  }
  return { ended: ended.catch(() => {}), finished: finish() }
}

/** Names the content of the pause. */
function contentOf({
  owner,
}: RunningSandbox['record']): Pick<CellRecord, 'keptGeneration' | 'keptId'> {
  if (owner.generation === undefined) return {}
  return { keptGeneration: owner.generation, keptId: randomLabel(12) }
}

function memoryNotKept({ name }: Runtime): Fault {
  return new Fault(
    'invalid',
    'memory_not_kept',
    `The runtime ${name} cannot keep memory: pause without memory, or use a node with gVisor`,
  )
}
