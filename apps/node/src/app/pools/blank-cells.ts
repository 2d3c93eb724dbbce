import { Fault } from '@atoll/kit/fault'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import { createBlankSupplies } from './blank-supplies.ts'
import type { BlankCellPorts, BlankKind, BlankSupplies } from './blank-supplies.ts'

/**
 * Cells with a slot, a control group and an empty sandbox process, made ahead of restores by recent demand. A restore
 * adds disk and memory, and takes half as long as one that makes the cell too. Blank cells of one kind are
 * interchangeable: they have run nothing yet. A crash of the agent leaves them in phase `making`, and the next start
 * removes them.
 */
export interface BlankCells extends Pick<BlankSupplies, 'trim' | 'count'> {
  /**
   * Runs `restore` with a blank cell of this kind, or without one. When it fails with a blank cell, runs it once more
   * without. `restore` removes the cell when it fails.
   */
  use<T>(kind: BlankKind, restore: (blank: Cell | undefined) => Promise<T>): Promise<T>
  /** Starts to make blank cells for restores that will follow soon. */
  expect(kind: BlankKind, count: number): void
  /** Removes all blank cells, for a host that runs short. Returns whether there were any. */
  giveUp(): Promise<boolean>
  close(): Promise<void>
}

/** A restore uses both cores for a moment, and the first command in the new sandbox follows at once. */
const refillDelayMs = 300
/** Consecutive failures after which blank cells are not used for a while. */
const maxFailures = 3
const offAfterFailuresMs = 60_000

/** `limit` is the largest number of blank cells at a time. */
export function createBlankCells(parts: {
  readonly ports: BlankCellPorts
  readonly limit: number
}): BlankCells {
  const { ports } = parts
  let restores = 0
  let isClosed = false
  const breaker = createBreaker(ports, () => void supplies.empty().catch(ports.onError))
  const isOff = () => isClosed || breaker.isOpen()
  const supplies = createBlankSupplies({ ...parts, isOff, onFailure: breaker.noteFailure })

  async function restoreWith<T>(
    kind: BlankKind,
    restore: (blank: Cell | undefined) => Promise<T>,
  ): Promise<T> {
    const blank = isOff() ? undefined : await supplies.take(kind)
    if (!blank) return restore(undefined)
    try {
      const result = await restore(blank)
      breaker.noteSuccess()
      return result
    } catch (error) {
      // Neither an abort nor a full host says anything about blank cells.
      if (isAbort(error) || (error instanceof Fault && error.kind === 'exhausted')) throw error
      breaker.noteFailure(error)
      return restore(undefined)
    }
  }

  return {
    async use(kind, restore) {
      supplies.noteDemand(kind)
      restores += 1
      try {
        return await restoreWith(kind, restore)
      } finally {
        restores -= 1
        setTimeout(() => {
          if (restores === 0) supplies.refill()
        }, refillDelayMs).unref()
      }
    },

    expect: supplies.fill,
    giveUp: supplies.empty,
    trim: supplies.trim,
    count: supplies.count,

    async close() {
      isClosed = true
      await supplies.settle()
      await supplies.empty()
    },
  }
}

interface Breaker {
  isOpen(): boolean
  noteFailure(cause: unknown): void
  noteSuccess(): void
}

/** Turns blank cells off for a while after consecutive failures. */
function createBreaker(
  { nowMs, onError }: Pick<BlankCellPorts, 'nowMs' | 'onError'>,
  onOpen: () => void,
): Breaker {
  let failures = 0
  let offUntilMs = 0
  return {
    isOpen: () => nowMs() < offUntilMs,
    noteFailure(cause) {
      onError(cause)
      failures += 1
      if (failures < maxFailures) return
      failures = 0
      offUntilMs = nowMs() + offAfterFailuresMs
      onOpen()
    },
    noteSuccess() {
      failures = 0
    },
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}
