import { toSlot } from '../domain/slot.ts'
import type { Slot, Subnet } from '../domain/slot.ts'
import type { Cell, CellRecord, Owner } from '../domain/cell.ts'
import type { PausedSandbox, ProcessIdentity, RunningSandbox } from '../domain/sandbox.ts'

export interface ReclaimPorts {
  readonly records: {
    list(): Promise<{ cellId: string; record: CellRecord | undefined }[]>
    update(record: CellRecord): Promise<void>
  }
  isAlive(process: ProcessIdentity): boolean
  /** Whether a cell that is nobody's is worth keeping. */
  isCurrent(record: CellRecord): boolean
  /** Ids under which anything at all is left: state of runtimes, control groups, mounts, processes. */
  traces(): Promise<string[]>
  killStrays(keep: ReadonlySet<string>): Promise<void>
  /** Lets one that stands still to be copied go on. */
  thaw(record: CellRecord): Promise<void>
  /** Lets one go on that stood ready and was just taken, as all others do. Succeeds when it goes on already. */
  wake(cellId: string): Promise<void>
  halt(cellId: string): Promise<void>
  erase(cellId: string): Promise<void>
  /** Removes what is in the folder of a cell but does not belong to this record. */
  tidy(record: CellRecord): Promise<void>
  /** Names of network slots that exist. */
  slotNames(): Promise<string[]>
  removeSlot(slot: Slot): Promise<void>
  onError(error: unknown): void
}

export interface Reclaimed {
  readonly running: readonly RunningSandbox[]
  readonly ready: readonly Cell[]
  readonly paused: readonly PausedSandbox[]
  /** Ids of those cells among the running that stand still and could not be let go on. */
  readonly stuck: readonly string[]
}

/**
 * What a dead predecessor left: sandboxes that still run are adopted, paused ones are kept, everything else is removed.
 * Half-made ones are not finished: whoever asked for them has lost the connection too. One that was half resumed is
 * paused again, from the state that its pause kept.
 */
export async function reclaim(
  ports: ReclaimPorts,
  subnet: Subnet,
  linkPrefix: string,
): Promise<Reclaimed> {
  const entries = await ports.records.list()
  const records = entries.flatMap(({ record }) => record ?? [])
  const live = records.flatMap((record) => {
    const { process, slotNumber } = record
    if (!process || slotNumber === undefined || !ports.isAlive(process)) return []
    return [{ record, slot: toSlot(subnet, linkPrefix, slotNumber) }]
  })
  const running = live.filter(isOwned).filter(({ record }) => isRunning(record))
  const ready = live.filter(({ record }) => record.phase === 'ready' && ports.isCurrent(record))
  const paused = records.filter(isOwnedRecord).filter(isPaused).map(asPaused)

  const kept = new Set([...running, ...ready].map(({ record }) => record.cellId))
  await ports.killStrays(kept)
  const pausedIds = new Set(paused.map(({ cellId }) => cellId))
  const traces = await ports.traces()
  for (const cellId of new Set([...entries.map((entry) => entry.cellId), ...traces])) {
    if (kept.has(cellId)) continue
    await (pausedIds.has(cellId) ? ports.halt(cellId) : ports.erase(cellId))
  }
  // Each write waits for the disk, and most of these are as they were left.
  const half = new Set(records.filter(({ phase }) => phase === 'resuming').map(cellIdOf))
  for (const record of paused) {
    if (half.has(record.cellId)) await ports.records.update(record)
    await ports.tidy(record)
  }

  const keptSlots = new Set([...running, ...ready].map(({ slot }) => slot.link))
  for (const name of await ports.slotNames()) {
    if (keptSlots.has(name)) continue
    await ports.removeSlot(toSlot(subnet, linkPrefix, Number(name.slice(linkPrefix.length))))
  }
  const stuck: string[] = []
  return { running: await Promise.all(running.map(goOn)), ready, paused, stuck }

  async function goOn(sandbox: RunningSandbox): Promise<RunningSandbox> {
    const record = { ...sandbox.record, phase: 'running' as const }
    await ports.wake(record.cellId)
    if (sandbox.record.phase === 'copying') {
      // One that stays as it is must not keep all others from being looked after.
      await ports
        .thaw(record)
        .then(() => ports.records.update(record))
        .catch((error: unknown) => {
          stuck.push(record.cellId)
          ports.onError(error)
        })
    }
    await ports.tidy(record)
    return { ...sandbox, record }
  }
}

function cellIdOf({ cellId }: CellRecord): string {
  return cellId
}

function isRunning({ phase }: CellRecord): boolean {
  return phase === 'running' || phase === 'copying'
}

function isPaused({ phase }: CellRecord): boolean {
  return phase === 'paused' || phase === 'resuming'
}

function asPaused({
  process: _process,
  slotNumber: _slot,
  ...record
}: PausedSandbox): PausedSandbox {
  return { ...record, phase: 'paused' }
}

function isOwnedRecord(record: CellRecord): record is CellRecord & { readonly owner: Owner } {
  return record.owner !== undefined
}

function isOwned(cell: Cell): cell is RunningSandbox {
  return isOwnedRecord(cell.record)
}
