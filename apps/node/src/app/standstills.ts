import { Fault } from '@atoll/kit/fault'
import type { Cell, CellRecord } from '../domain/cell.ts'

/**
 * Cells that stand still while they are copied. One that cannot be let go on afterwards is remembered, to be tried again
 * after waits that grow, until it goes on or is gone.
 */
export interface Standstills {
  begin(cell: Cell): Promise<void>
  /** A failure is told, not thrown: what the cell stood still for may have been done all the same. */
  end(cell: Cell): Promise<void>
  /** Whether it could not be let go on. */
  isStuck(cellId: string): boolean
  /** One that a predecessor left so. */
  adopt(cellId: string): void
  /** Which of these are to be tried again now. All others are taken to be gone, and forgotten. */
  due<C extends Cell>(present: readonly C[]): C[]
}

export interface StandstillPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  freeze(record: CellRecord): Promise<void>
  /** Whether its process was stopped by a signal; such a sandbox answers no command until it is continued. */
  isStopped(record: CellRecord): boolean
  /** Succeeds when it is not frozen. */
  thaw(record: CellRecord): Promise<void>
  nowMs(): number
  /** It could not be let go on, for the `attempt`th time, and is tried again after `waitMs`. */
  onStuck(cell: Cell, failure: StuckFailure): void
  /** It goes on after all. */
  onFreed(cell: Cell): void
}

export interface StuckFailure {
  readonly error: unknown
  readonly attempt: number
  readonly waitMs: number
}

const firstWaitMs = 250
const longestWaitMs = 30_000

export function createStandstills(ports: StandstillPorts): Standstills {
  const { records } = ports
  const stuck = new Map<string, { readonly attempt: number; readonly dueMs: number }>()
  /** Cells that may be frozen. */
  const begun = new Set<string>()

  async function end(cell: Cell): Promise<void> {
    const { record } = cell
    const { cellId } = record
    if (!begun.delete(cellId) && !stuck.has(cellId)) return
    try {
      await ports.thaw(record)
      await records.update(record)
    } catch (error) {
      const attempt = (stuck.get(cellId)?.attempt ?? 0) + 1
      const waitMs = Math.min(firstWaitMs * 2 ** (attempt - 1), longestWaitMs)
      stuck.set(cellId, { attempt, dueMs: ports.nowMs() + waitMs })
      ports.onStuck(cell, { error, attempt, waitMs })
      return
    }
    if (stuck.delete(cellId)) ports.onFreed(cell)
  }

  return {
    async begin(cell) {
      const { cellId } = cell.record
      if (ports.isStopped(cell.record)) throw stopped()
      // One that stands still already would be taken for one that goes on again too early.
      if (stuck.has(cellId)) await end(cell)
      if (stuck.has(cellId)) {
        throw new Fault(
          'unavailable',
          'sandbox_stands_still',
          'The sandbox stands still since it was last copied, and cannot be let go on yet; try again later',
        )
      }
      begun.add(cellId)
      await records.update({ ...cell.record, phase: 'copying' })
      await ports.freeze(cell.record)
    },

    end,
    isStuck: (cellId) => stuck.has(cellId),
    adopt: (cellId) => void stuck.set(cellId, { attempt: 1, dueMs: ports.nowMs() }),

    due(present) {
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
