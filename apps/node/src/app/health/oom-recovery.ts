import type { Cell } from '../../domain/sandboxes/cell.ts'

export interface LossPorts {
  readonly running: () => readonly Cell[]
  /** Number of OOM kills in this cell. */
  oomKills(cellId: string): number
  /** Makes the remaining threads of a killed process exit. */
  rouse(cell: Cell): Promise<void>
  /** Whether envd answers within seconds. */
  answers(cell: Cell): Promise<boolean>
  /** Last resort: ends the cell unless its envd answers after all. Returns whether envd answered. */
  endUnlessAnswers(cell: Cell): Promise<boolean>
  onError(error: unknown): void
}

/** State of a cell that had an OOM kill. */
interface Loss {
  readonly kills: number
  /** Last rouse: number of OOM kills at that time, and checks since then. */
  readonly roused: { readonly kills: number; readonly looksAgo: number }
  /**
   * Checks since the last OOM kill without an answer of envd; 0 once envd has answered. envd is not asked at the first
   * check: an envd that becomes active while the memory is still full may be killed next.
   */
  readonly silentLooks: number
}

/**
 * Recovers cells after OOM kills. The killed process may have been one of envd's, or the memory may still be full
 * because the remaining threads of the process hold it.
 */
export function createLosses(ports: LossPorts) {
  let known = new Map<string, Loss>()
  const asked = new Set<string>()
  const roused = new Set<string>()

  async function rouse(cell: Cell): Promise<void> {
    const { cellId } = cell.record
    roused.add(cellId)
    await ports.rouse(cell).finally(() => roused.delete(cellId))
  }

  async function ask(cell: Cell, { kills, silentLooks }: Loss): Promise<void> {
    const { cellId } = cell.record
    if (asked.has(cellId)) return
    asked.add(cellId)
    try {
      const isLast = silentLooks > patience
      const isWell = await (isLast ? ports.endUnlessAnswers(cell) : ports.answers(cell))
      const loss = known.get(cellId)
      if (!isWell || !loss) return
      // The answer came before the next OOM kill and says nothing about it, but envd is not silent.
      known.set(cellId, { ...loss, silentLooks: loss.kills === kills ? 0 : 1 })
    } finally {
      asked.delete(cellId)
    }
  }

  function lookAt(cell: Cell): Loss | undefined {
    const { cellId } = cell.record
    const kills = ports.oomKills(cellId)
    if (kills === 0) return undefined
    const last = known.get(cellId) ?? nothing
    const isSilent = kills > last.kills || last.silentLooks > 0
    const looksAgo = last.roused.looksAgo + 1
    const isToBeRoused =
      kills > last.roused.kills && looksAgo >= looksBetween && !roused.has(cellId)
    const loss = {
      kills,
      silentLooks: isSilent ? last.silentLooks + 1 : 0,
      roused: isToBeRoused ? { kills, looksAgo: 0 } : { ...last.roused, looksAgo },
    }
    if (isToBeRoused) void rouse(cell).catch(ports.onError)
    if (loss.silentLooks > 1) void ask(cell, loss).catch(ports.onError)
    return loss
  }

  return {
    /** One pass over all running cells. */
    look(): void {
      const next = new Map<string, Loss>()
      for (const cell of ports.running()) {
        try {
          const loss = lookAt(cell)
          if (loss) next.set(cell.record.cellId, loss)
        } catch (error) {
          // An error in one cell must not stop the checks of the others.
          ports.onError(error)
        }
      }
      known = next
    },
  }
}

const nothing: Loss = {
  kills: 0,
  roused: { kills: 0, looksAgo: Number.POSITIVE_INFINITY },
  silentLooks: 0,
}

/**
 * Minimum number of checks between rouses, so that a cell that keeps running out of memory does not keep the node busy.
 */
const looksBetween = 5

/** Checks without an answer before a cell is ended. A cell with a thousand processes and one CPU answers late. */
const patience = 30
