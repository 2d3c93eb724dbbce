import { Fault } from '@atoll/kit/fault'
import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'

/**
 * Freezes cells during a copy. A cell that cannot be thawed afterwards is retried with back-off, until it is thawed or
 * gone.
 */
export interface Freezes {
  freeze(cell: Cell): Promise<void>
  /** Thaws the cell. Reports failures to `onStuck` instead of throwing: the copy itself may have succeeded. */
  thaw(cell: Cell): Promise<void>
  /** Whether the last thaw failed. */
  isStuck(cellId: string): boolean
  /** Registers a cell that an earlier agent left frozen. */
  adopt(cellId: string): void
  /** Returns the cells whose next thaw is due. Forgets cells that are not in `present`: they are gone. */
  dueForThaw<C extends Cell>(present: readonly C[]): C[]
}

export interface FreezePorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  /** Gives an idle sandbox exact timers again. Otherwise its timers would fire late during the save, and delay it. */
  wake(record: CellRecord): void
  freeze(record: CellRecord): Promise<void>
  /** Whether the process was stopped by a signal. Such a sandbox answers no command until it gets SIGCONT. */
  isStopped(record: CellRecord): boolean
  /** Succeeds when the cell is not frozen. */
  thaw(record: CellRecord): Promise<void>
  nowMs(): number
  /** Called when a thaw has failed for the `attempt`th time. The next attempt is after `waitMs`. */
  onStuck(cell: Cell, failure: StuckFailure): void
  /** Called when a stuck cell has been thawed. */
  onThawed(cell: Cell): void
}

export interface StuckFailure {
  readonly error: unknown
  readonly attempt: number
  readonly waitMs: number
}

const firstWaitMs = 250
const maxWaitMs = 30_000

export function createFreezes(ports: FreezePorts): Freezes {
  const { records } = ports
  const stuck = new Map<string, { readonly attempt: number; readonly dueMs: number }>()
  /** Cells that may be frozen. */
  const begun = new Set<string>()

  async function thaw(cell: Cell): Promise<void> {
    const { record } = cell
    const { cellId } = record
    if (!begun.delete(cellId) && !stuck.has(cellId)) return
    try {
      await ports.thaw(record)
      await records.update(record)
    } catch (error) {
      const attempt = (stuck.get(cellId)?.attempt ?? 0) + 1
      const waitMs = Math.min(firstWaitMs * 2 ** (attempt - 1), maxWaitMs)
      stuck.set(cellId, { attempt, dueMs: ports.nowMs() + waitMs })
      ports.onStuck(cell, { error, attempt, waitMs })
      return
    }
    if (stuck.delete(cellId)) ports.onThawed(cell)
  }

  return {
    async freeze(cell) {
      const { cellId } = cell.record
      if (ports.isStopped(cell.record)) throw stopped()
      // Thaw a stuck cell first: after a second freeze, the node would believe too early that the cell runs again.
      if (stuck.has(cellId)) await thaw(cell)
      if (stuck.has(cellId)) {
        throw new Fault(
          'unavailable',
          'sandbox_stands_still',
          'The sandbox is still frozen from its last copy, because the runtime failed to thaw it; try again later',
        )
      }
      begun.add(cellId)
      await records.update({ ...cell.record, phase: 'copying' })
      ports.wake(cell.record)
      await ports.freeze(cell.record)
    },

    thaw,
    isStuck: (cellId) => stuck.has(cellId),
    adopt: (cellId) => void stuck.set(cellId, { attempt: 1, dueMs: ports.nowMs() }),

    dueForThaw(present) {
      if (stuck.size === 0) return []
      const here = new Set(present.map(({ record }) => record.cellId))
      for (const cellId of stuck.keys()) if (!here.has(cellId)) stuck.delete(cellId)
      const nowMs = ports.nowMs()
      return present.filter(({ record }) => (stuck.get(record.cellId)?.dueMs ?? Infinity) <= nowMs)
    },
  }
}

function stopped(): Fault {
  return new Fault(
    'invalid',
    'sandbox_stopped',
    'Memory cannot be kept while the process of the sandbox on its node is stopped by a signal (SIGSTOP); an operator can continue it (SIGCONT)',
  )
}
