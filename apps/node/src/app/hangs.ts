import type { Cell } from '../domain/cell.ts'
import type { Runtime } from '../domain/sandbox.ts'

export interface HangPorts {
  readonly running: () => readonly Cell[]
  /** How often the kernel ended a process of this cell for lack of memory. */
  oomKills(cellId: string): number
  readonly runtimes: Readonly<Record<Runtime['name'], Pick<Runtime, 'lostAnswers'>>>
  /** The one way out for a sandbox that hangs: it is found dead then, and the reason is told. */
  end(cell: Cell): void
  onError(error: unknown): void
}

/** What was waited for in vain at the last look, each with the number of looks in a row at which it was. */
type Waits = ReadonlyMap<string, number>

/**
 * Looks for sandboxes that hang since the kernel, short of memory, ended one of their processes while another waited for
 * its answer. Whoever uses such a process would wait for ever, and could not even kill it.
 */
export function createHangs(ports: HangPorts) {
  let seen = new Map<string, Waits>()

  function lookAt({ record }: Cell): Waits {
    const { cellId, runtime, process } = record
    if (!process || ports.oomKills(cellId) === 0) return none
    const before = seen.get(cellId)
    const lost = ports.runtimes[runtime].lostAnswers(process)
    return new Map(lost.map((wait) => [wait, (before?.get(wait) ?? 0) + 1]))
  }

  /** What goes wrong with one is no reason not to look at the others. */
  function tryToLookAt(cell: Cell): Waits {
    try {
      return lookAt(cell)
    } catch (error) {
      ports.onError(error)
      return none
    }
  }

  return {
    /** One pass over all that runs. */
    look(): void {
      const next = new Map<string, Waits>()
      for (const cell of ports.running()) {
        const waits = tryToLookAt(cell)
        if (waits.size > 0) next.set(cell.record.cellId, waits)
        if (Math.max(0, ...waits.values()) >= patience) ports.end(cell)
      }
      seen = next
    },
  }
}

const none: Waits = new Map()

/** So many looks in a row: who is looked at goes on meanwhile, and is not seen as it is at any one moment. */
const patience = 5
