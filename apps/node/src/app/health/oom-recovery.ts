import type { Cell } from '../../domain/sandboxes/cell.ts'

export interface OomRecoveryPorts {
  readonly running: () => readonly Cell[]
  /** Number of OOM kills in this cell. */
  oomKills(cellId: string): number
  /** Makes the remaining threads of a killed process exit. */
  freezeAndThaw(cell: Cell): Promise<void>
  /** Whether envd answers within seconds. */
  answers(cell: Cell): Promise<boolean>
  /** Last resort: ends the cell unless its envd answers after all. Returns whether envd answered. */
  killUnlessAnswers(cell: Cell): Promise<boolean>
  onError(error: unknown): void
}

/** State of a cell that had an OOM kill. */
interface OomState {
  readonly kills: number
  /** Last freeze and thaw: number of OOM kills at that time, and checks since then. */
  readonly cycled: { readonly kills: number; readonly checksAgo: number }
  /**
   * Checks since the last OOM kill without an answer of envd; 0 once envd has answered. envd is not asked at the first
   * check: an envd that becomes active while the memory is still full may be killed next.
   */
  readonly silentChecks: number
}

/**
 * Recovers cells after OOM kills. The killed process may have been one of envd's, or the memory may still be full
 * because the remaining threads of the process hold it.
 */
export function createOomRecovery(ports: OomRecoveryPorts) {
  let known = new Map<string, OomState>()
  const asking = new Set<string>()
  const cycling = new Set<string>()

  async function cycle(cell: Cell): Promise<void> {
    const { cellId } = cell.record
    cycling.add(cellId)
    await ports.freezeAndThaw(cell).finally(() => cycling.delete(cellId))
  }

  async function askEnvd(cell: Cell, { kills, silentChecks }: OomState): Promise<void> {
    const { cellId } = cell.record
    if (asking.has(cellId)) return
    asking.add(cellId)
    try {
      const isLast = silentChecks > patience
      const isWell = await (isLast ? ports.killUnlessAnswers(cell) : ports.answers(cell))
      const state = known.get(cellId)
      if (!isWell || !state) return
      // The answer came before the next OOM kill and says nothing about it, but envd is not silent.
      known.set(cellId, { ...state, silentChecks: state.kills === kills ? 0 : 1 })
    } finally {
      asking.delete(cellId)
    }
  }

  function checkCell(cell: Cell): OomState | undefined {
    const { cellId } = cell.record
    const kills = ports.oomKills(cellId)
    if (kills === 0) return undefined
    const state = nextState(known.get(cellId) ?? noKills, kills, !cycling.has(cellId))
    if (state.cycled.checksAgo === 0) void cycle(cell).catch(ports.onError)
    if (state.silentChecks > 1) void askEnvd(cell, state).catch(ports.onError)
    return state
  }

  return {
    /** One pass over all running cells. */
    check(): void {
      const next = new Map<string, OomState>()
      for (const cell of ports.running()) {
        try {
          const state = checkCell(cell)
          if (state) next.set(cell.record.cellId, state)
        } catch (error) {
          // An error in one cell must not stop the checks of the others.
          ports.onError(error)
        }
      }
      known = next
    },
  }
}

/** `canCycle` is false while a freeze and thaw is under way. */
function nextState(last: OomState, kills: number, canCycle: boolean): OomState {
  const isSilent = kills > last.kills || last.silentChecks > 0
  const checksAgo = last.cycled.checksAgo + 1
  const isCycleDue = canCycle && kills > last.cycled.kills && checksAgo >= checksBetween
  return {
    kills,
    silentChecks: isSilent ? last.silentChecks + 1 : 0,
    cycled: isCycleDue ? { kills, checksAgo: 0 } : { ...last.cycled, checksAgo },
  }
}

const noKills: OomState = {
  kills: 0,
  cycled: { kills: 0, checksAgo: Number.POSITIVE_INFINITY },
  silentChecks: 0,
}

/**
 * Minimum number of checks between two such cycles, so that a cell that keeps running out of memory does not keep the node busy.
 */
const checksBetween = 5

/** Checks without an answer before a cell is ended. A cell with a thousand processes and one CPU answers late. */
const patience = 30
