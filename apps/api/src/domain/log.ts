/** Sandbox logs. The node stores the entries; only the records of the control plane say which team owns them. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogEntry {
  /** Milliseconds since 1970, unique within a sandbox. */
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

export interface LogQuery {
  readonly fromMs: number
  /** Exclusive. Undefined means no upper bound. */
  readonly beforeMs?: number | undefined
  /** Sort order; also selects the entries to return when more than `limit` match. */
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

/** Last line that programs of a sandbox printed, cut. */
export interface LastLine {
  readonly sandboxId: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly text: string
}

export interface LogNode {
  read(sandboxId: string, query: LogQuery, signal: AbortSignal): Promise<LogEntry[]>
  /** Reads what nodes have uploaded to the object store. Undefined if it has no log of this sandbox. */
  readStored(
    sandboxId: string,
    query: LogQuery,
    signal: AbortSignal,
  ): Promise<LogEntry[] | undefined>
  /** Omits sandboxes that are not on the node, and those without a line. */
  lastLines(sandboxIds: readonly string[], signal: AbortSignal): Promise<LastLine[]>
  list(signal: AbortSignal): Promise<KeptLog[]>
  /** Keeps the logs of sandboxes that have not ended. */
  remove(sandboxIds: readonly string[], signal: AbortSignal): Promise<void>
}

export interface LogOwners {
  /** Lists the nodes of those sandboxes that belong to the team, also of ended ones. */
  nodesOf(teamId: string, sandboxIds: readonly string[]): Promise<readonly SandboxPlace[]>
  /** Lists the running sandboxes of a team. */
  runningOf(teamId: string): Promise<readonly SandboxPlace[]>
  /** Maps each sandbox that has a record to its team. */
  teamsOf(sandboxIds: readonly string[]): Promise<ReadonlyMap<string, string>>
}

export interface SandboxPlace {
  readonly sandboxId: string
  readonly nodeId: string
}

export const logWindowMs = 7 * 24 * 60 * 60 * 1000

/**
 * Returns the 7 days after or before the cursor. Without a cursor, returns the last 7 days without an upper bound: a
 * burst of entries gets timestamps ahead of the clock.
 */
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

/** Log quota per team, so that no team uses up the space of the others. */
export const teamLogBytes = 256 * 1024 * 1024

/** Selects the oldest logs of each team over its quota, until the rest fits. */
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
      if (team === undefined) return false // the node deletes such logs by age
      const size = (sizes.get(team) ?? 0) + sizeBytes
      sizes.set(team, size)
      return size > limitBytes
    })
}
