import type { Cell } from '../../domain/sandboxes/cell.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

export interface HangPorts {
  readonly running: () => readonly Cell[]
  /** Number of OOM kills in this cell. */
  oomKills(cellId: string): number
  readonly runtimes: Readonly<Record<Runtime['name'], Pick<Runtime, 'orphanedRequests'>>>
  /** Kills a hung sandbox. The reaper then finds it dead and reports the reason. */
  end(cell: Cell): void
  onError(error: unknown): void
}

/** Pending requests without an answering process, each with the number of consecutive checks that have seen it. */
type Waits = ReadonlyMap<string, number>

/**
 * Finds sandboxes that hang because an OOM kill ended a process while another one waited for its answer. Clients of
 * such a process would wait forever and could not even kill it.
 */
export function createHangDetector(ports: HangPorts) {
  let seen = new Map<string, Waits>()

  function checkCell({ record }: Cell): Waits {
    const { cellId, runtime, process } = record
    if (!process || ports.oomKills(cellId) === 0) return none
    const before = seen.get(cellId)
    const lost = ports.runtimes[runtime].orphanedRequests(process)
    return new Map(lost.map((wait) => [wait, (before?.get(wait) ?? 0) + 1]))
  }

  /** An error in one cell must not stop the checks of the others. */
  function tryToCheck(cell: Cell): Waits {
    try {
      return checkCell(cell)
    } catch (error) {
      ports.onError(error)
      return none
    }
  }

  return {
    /** One pass over all running cells. */
    check(): void {
      const next = new Map<string, Waits>()
      for (const cell of ports.running()) {
        const waits = tryToCheck(cell)
        if (waits.size > 0) next.set(cell.record.cellId, waits)
        if (Math.max(0, ...waits.values()) >= patience) ports.end(cell)
      }
      seen = next
    },
  }
}

const none: Waits = new Map()

/**
 * Consecutive checks before a sandbox counts as hung. The sandbox runs during a check, so a single check does not see a
 * consistent state.
 */
const patience = 5
