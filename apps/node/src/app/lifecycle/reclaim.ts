import { toSlot } from '../../domain/network/slot.ts'
import type { Slot, Subnet } from '../../domain/network/slot.ts'
import type { Cell, CellRecord, Owner } from '../../domain/sandboxes/cell.ts'
import type { QuarantinedCell } from '../../domain/sandboxes/quarantine.ts'
import { isSameContent } from '../../domain/sandboxes/content-name.ts'
import { isEvicted } from '../../domain/sandboxes/sandbox.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'

export interface ReclaimPorts {
  readonly records: {
    list(): Promise<readonly ReclaimEntry[]>
    update(record: CellRecord): Promise<void>
  }
  isAlive(process: ProcessIdentity): boolean
  /** Whether a cell without an owner is worth keeping. */
  isCurrent(record: CellRecord): boolean
  /** IDs of cells that left anything on the host: runtime state, control groups, mounts or processes. */
  traces(): Promise<string[]>
  killStrays(keep: ReadonlySet<string>): Promise<void>
  /** Thaws a cell that was frozen for a copy. */
  thaw(record: CellRecord): Promise<void>
  /** Thaws a claimed cell of a warm pool and drops its boot-time CPU priority. Succeeds when the cell already runs. */
  thawClaimed(cellId: string): Promise<void>
  halt(cellId: string): Promise<void>
  erase(cellId: string): Promise<void>
  /** Removes files in the cell's folder that do not belong to this record. */
  tidy(record: CellRecord): Promise<void>
  /** Names of the existing network slots. */
  slotNames(): Promise<string[]>
  removeSlot(slot: Slot): Promise<void>
  onError(error: unknown): void
}

/** A cell's folder. Without record and quarantine, it is a leftover. */
export interface ReclaimEntry {
  readonly cellId: string
  readonly record?: CellRecord
  readonly quarantined?: QuarantinedCell
}

export interface Reclaimed {
  readonly running: readonly RunningSandbox[]
  readonly ready: readonly Cell[]
  readonly paused: readonly PausedSandbox[]
  /** IDs of running cells that are frozen and could not be thawed. */
  readonly stuck: readonly string[]
  /** Cells with unreadable records. Their files, mounts and processes are kept. */
  readonly quarantined: readonly QuarantinedCell[]
  /** Slots that quarantined cells use or may use. No other cell gets one of these. */
  readonly quarantinedSlots: readonly Slot[]
}

/**
 * Reconciles the host with the records of the last agent: adopts running sandboxes, keeps paused ones, leaves cells
 * with unreadable records alone, and removes everything else.
 *
 * Half-made cells are removed, because the caller who wanted them has lost the connection. Half-resumed cells become
 * paused again, with the state that their pause kept.
 */
export async function reclaim(
  ports: ReclaimPorts,
  subnet: Subnet,
  linkPrefix: string,
): Promise<Reclaimed> {
  const entries = await ports.records.list()
  const records = entries.flatMap(({ record }) => record ?? [])
  const quarantined = entries.flatMap((entry) => entry.quarantined ?? [])
  const live = records.flatMap((record) => {
    const { process, slotNumber } = record
    if (!process || slotNumber === undefined || !ports.isAlive(process)) return []
    return [{ record, slot: toSlot(subnet, linkPrefix, slotNumber) }]
  })
  const owned = records.filter(isOwnedRecord)
  const running = findRunning(live.filter(isOwned), owned)
  const ready = live.filter(({ record }) => record.phase === 'ready' && ports.isCurrent(record))
  const paused = findPaused(owned, running)

  const kept = new Set([...running, ...ready].map(({ record }) => record.cellId))
  for (const { cellId } of quarantined) kept.add(cellId)
  await ports.killStrays(kept)
  const pausedIds = new Set(paused.map(({ cellId }) => cellId))
  const traces = await ports.traces()
  for (const cellId of new Set([...entries.map((entry) => entry.cellId), ...traces])) {
    if (kept.has(cellId)) continue
    await (pausedIds.has(cellId) ? ports.halt(cellId) : ports.erase(cellId))
  }
  // Update only interrupted resumes: each write waits for the disk, and most records have not changed.
  const halfResumed = new Set(records.filter(({ phase }) => phase === 'resuming').map(cellIdOf))
  for (const record of paused) {
    if (halfResumed.has(record.cellId)) await ports.records.update(record)
    await ports.tidy(record)
  }

  const keptSlots = new Set([...running, ...ready].map(({ slot }) => slot.link))
  const unusedSlots = (await ports.slotNames())
    .filter((name) => !keptSlots.has(name))
    .map((name) => toSlot(subnet, linkPrefix, Number(name.slice(linkPrefix.length))))
  const withTraces = new Set(traces)
  const isQuarantined = mayBeUsedBy(quarantined.filter(({ cellId }) => withTraces.has(cellId)))
  const quarantinedSlots = unusedSlots.filter(isQuarantined)
  for (const slot of unusedSlots) if (!isQuarantined(slot)) await ports.removeSlot(slot)
  const adopted = await Promise.all(running.map((sandbox) => adopt(ports, sandbox)))
  const stuck = adopted.filter(({ isStuck }) => isStuck).map(({ sandbox }) => sandbox.record.cellId)
  return {
    running: adopted.map(({ sandbox }) => sandbox),
    ready,
    paused,
    stuck,
    quarantined,
    quarantinedSlots,
  }
}

/**
 * Leaves out cells of resumes that failed: a resume that succeeds leaves no record of its generation that says `paused`. An
 * older generation may be left of a sandbox that this node took over from another one.
 */
function findRunning(
  live: readonly RunningSandbox[],
  records: readonly OwnedRecord[],
): readonly RunningSandbox[] {
  const pausedGenerations = new Map<string, number>()
  for (const { phase, owner } of records) {
    if (phase !== 'paused') continue
    const known = pausedGenerations.get(owner.sandboxId) ?? 0
    pausedGenerations.set(owner.sandboxId, Math.max(known, owner.generation ?? 0))
  }
  return live.filter(({ record }) => {
    const { sandboxId, generation = 0 } = record.owner
    return isRunning(record) && generation > (pausedGenerations.get(sandboxId) ?? -1)
  })
}

/** Leaves out cells whose sandbox has newer state in another cell: older cells are removed last. */
function findPaused(
  records: readonly OwnedRecord[],
  running: readonly RunningSandbox[],
): readonly PausedSandbox[] {
  const runningIds = new Set(running.map(({ record }) => record.owner.sandboxId))
  const kept = records.filter(
    ({ phase, owner }) =>
      (phase === 'paused' || phase === 'resuming' || phase === 'evicted') &&
      !runningIds.has(owner.sandboxId),
  )
  const bySandbox = Map.groupBy(kept, ({ owner }) => owner.sandboxId)
  return [...bySandbox.values()].flatMap((cells) =>
    cells.filter((cell) => !cells.some((other) => isNewer(other, cell))).map(asPaused),
  )
}

/**
 * Without numbers, an interrupted resume is older than a pause: the sandbox was paused again. Files win over the record that
 * stands for the same evicted files: an eviction or a fetch was interrupted.
 */
function isNewer(other: OwnedRecord, cell: OwnedRecord): boolean {
  const [theirs, ours] = [other.keptGeneration, cell.keptGeneration]
  if (theirs !== undefined && ours !== undefined && theirs !== ours) return theirs > ours
  if (isEvicted(cell) && !isEvicted(other)) return isSameContent(other, cell)
  return other.phase === 'paused' && cell.phase === 'resuming'
}

/** Lets a sandbox run on that may have been frozen. `isStuck`: it is still frozen. */
async function adopt(
  ports: ReclaimPorts,
  { record: { phase, ...rest }, ...cell }: RunningSandbox,
): Promise<{ readonly sandbox: RunningSandbox; readonly isStuck: boolean }> {
  const record = { ...rest, phase: 'running' as const }
  await ports.thawClaimed(record.cellId)
  const isStuck = phase === 'copying' && !(await thaw())
  await ports.tidy(record)
  return { sandbox: { ...cell, record }, isStuck }

  /** Returns false after a failure: a cell that stays frozen must not block the adoption of the others. */
  async function thaw(): Promise<boolean> {
    try {
      await ports.thaw(record)
      await ports.records.update(record)
      return true
    } catch (error) {
      ports.onError(error)
      return false
    }
  }
}

/** A quarantined cell whose record does not show its slot may use any slot. */
function mayBeUsedBy(live: readonly QuarantinedCell[]): (slot: Slot) => boolean {
  const numbers = new Set(live.map(({ slotNumber }) => slotNumber))
  return ({ number }) => numbers.has(undefined) || numbers.has(number)
}

function cellIdOf({ cellId }: CellRecord): string {
  return cellId
}

function isRunning({ phase }: CellRecord): boolean {
  return phase === 'running' || phase === 'copying'
}

function asPaused({
  process: _process,
  slotNumber: _slot,
  ...record
}: PausedSandbox): PausedSandbox {
  return isEvicted(record) ? record : { ...record, phase: 'paused' }
}

type OwnedRecord = CellRecord & { readonly owner: Owner }

function isOwnedRecord(record: CellRecord): record is OwnedRecord {
  return record.owner !== undefined
}

function isOwned(cell: Cell): cell is RunningSandbox {
  return isOwnedRecord(cell.record)
}
