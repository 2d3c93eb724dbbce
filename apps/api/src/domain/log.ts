/** What happened in sandboxes. The node keeps it; whose it is, only the records say. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogEntry {
  /** Milliseconds since 1970; no two entries of a sandbox have the same. */
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

export interface LogQuery {
  readonly fromMs: number
  /** Exclusive; undefined: whatever there is. */
  readonly beforeMs?: number | undefined
  /** Which of them when there are more than `limit`, and in which order. */
  readonly newestFirst: boolean
  readonly limit: number
  readonly minLevel?: LogLevel | undefined
  readonly search?: string | undefined
}

export interface KeptLog {
  readonly sandboxId: string
  readonly sizeBytes: number
  readonly writtenAtMs: number
}

export interface LogNode {
  read(sandboxId: string, query: LogQuery, signal: AbortSignal): Promise<LogEntry[]>
  list(signal: AbortSignal): Promise<KeptLog[]>
  /** Those of sandboxes that have not ended stay. */
  remove(sandboxIds: readonly string[], signal: AbortSignal): Promise<void>
}

export interface LogOwners {
  /** The team of each of these sandboxes that has a record. */
  teamsOf(sandboxIds: readonly string[]): Promise<ReadonlyMap<string, string>>
}

export const logWindowMs = 7 * 24 * 60 * 60 * 1000

/** The 7 days that a cursor opens; without one the last 7 days, and what a burst put ahead of the clock. */
export function windowOf(
  cursorMs: number | undefined,
  direction: 'forward' | 'backward',
  nowMs: number,
): Pick<LogQuery, 'fromMs' | 'beforeMs'> {
  if (cursorMs === undefined) return { fromMs: nowMs - logWindowMs }
  return direction === 'forward'
    ? { fromMs: cursorMs, beforeMs: cursorMs + logWindowMs }
    : { fromMs: Math.max(0, cursorMs - logWindowMs), beforeMs: cursorMs }
}

/** How much the logs of one team may take, so that none takes the room of the others. */
export const teamLogBytes = 256 * 1024 * 1024

/** Of each team that has more than it may: the oldest of its logs, until the rest fits. */
export function excess(
  logs: readonly KeptLog[],
  teamOf: ReadonlyMap<string, string>,
  limitBytes = teamLogBytes,
): KeptLog[] {
  const sizes = new Map<string | undefined, number>()
  return logs
    .toSorted((a, b) => b.writtenAtMs - a.writtenAtMs)
    .filter(({ sandboxId, sizeBytes }) => {
      const team = teamOf.get(sandboxId)
      if (team === undefined) return false // the node lets it go by its age
      const size = (sizes.get(team) ?? 0) + sizeBytes
      sizes.set(team, size)
      return size > limitBytes
    })
}
