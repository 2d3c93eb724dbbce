import type { Cell } from '../domain/cell.ts'

export interface LossPorts {
  readonly running: () => readonly Cell[]
  /** How often the kernel ended a process of this cell for lack of memory. */
  oomKills(cellId: string): number
  /** Makes what is left of the process end too. */
  rouse(cell: Cell): Promise<void>
  /** Whether its envd does, within seconds. */
  answers(cell: Cell): Promise<boolean>
  /** The last resort: ends it, unless it answers after all. */
  endUnlessAnswers(cell: Cell): Promise<boolean>
  onError(error: unknown): void
}

/** What is known of a sandbox that lost a process. */
interface Loss {
  readonly kills: number
  /** When it was roused: after how many of them, and how many looks ago. */
  readonly roused: { readonly kills: number; readonly looksAgo: number }
  /**
   * Looks since the last loss at which its envd had not answered yet. None when it has. It is not asked at the first: an envd
   * that begins to do something while the memory is full still may be the next to be ended.
   */
  readonly silentLooks: number
}

/**
 * Looks after sandboxes that lost a process for lack of memory. It may have been one of envd's, or the memory may be full
 * still, because what is left of the process holds it.
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
      // What it said before another loss says nothing about that one, but it is not silent.
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
    /** One pass over all that runs. */
    look(): void {
      const next = new Map<string, Loss>()
      for (const cell of ports.running()) {
        try {
          const loss = lookAt(cell)
          if (loss) next.set(cell.record.cellId, loss)
        } catch (error) {
          // No reason not to look at the others.
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

/** Who runs out of memory again and again is not to keep the node busy with that. */
const looksBetween = 5

/** Looks. Who has a thousand processes and one processor answers late. */
const patience = 30
