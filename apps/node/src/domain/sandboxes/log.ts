/** Log entries of one sandbox have unique times. */

export const logLevels = ['debug', 'info', 'warn', 'error'] as const

export type LogLevel = (typeof logLevels)[number]

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

/** Last line that a program of the sandbox has printed, cut. */
export interface PrintedLine {
  readonly at: number
  readonly text: string
}

const maxPrintedChars = 200

/** Returns the newest line that says something. Entries of a program's output have the name of its stream. */
export function lastPrintedOf(entries: readonly LogEntry[]): PrintedLine | undefined {
  const found = entries.findLast(
    ({ fields, message }) => fields['stream'] !== undefined && message.trim() !== '',
  )
  return found && { at: found.at, text: found.message.slice(0, maxPrintedChars).toWellFormed() }
}

export interface LogQuery {
  readonly sandboxId: string
  readonly fromMs?: number | undefined
  /** Exclusive. */
  readonly beforeMs?: number | undefined
  /** Order of the entries, and which ones are returned when there are more than `limit`. */
  readonly newestFirst: boolean
  readonly limit: number
  readonly minLevel?: LogLevel | undefined
  /** Case-sensitive text in the message or a field. */
  readonly search?: string | undefined
}

export function matchesQuery(entry: LogEntry, { minLevel = 'debug', search }: LogQuery): boolean {
  if (logLevels.indexOf(entry.level) < logLevels.indexOf(minLevel)) return false
  if (!search) return true
  return [entry.message, ...Object.values(entry.fields)].some((text) => text.includes(search))
}

/** Returns what a query asks for. `entries` are in order of their times. */
export function selectEntries(entries: readonly LogEntry[], query: LogQuery): LogEntry[] {
  const { fromMs = 0, beforeMs = Infinity, newestFirst, limit } = query
  const wanted = entries.filter(
    (entry) => entry.at >= fromMs && entry.at < beforeMs && matchesQuery(entry, query),
  )
  return (newestFirst ? wanted.toReversed() : wanted).slice(0, limit)
}

/** Logs on disk. Callers serialize the calls for one sandbox. */
export interface LogFiles {
  /** Time of the newest entry; 0 when there is none. */
  lastAt(sandboxId: string): Promise<number>
  /** Looks at the newest 500 entries at most. */
  lastPrinted(sandboxId: string): Promise<PrintedLine | undefined>
  /** Appends entries newer than all stored ones. Drops the oldest entries when the log is full. */
  append(sandboxId: string, entries: readonly LogEntry[]): Promise<void>
  read(query: LogQuery): Promise<LogEntry[]>
  list(): Promise<KeptLog[]>
  /** Returns undefined when there is no log. */
  find(sandboxId: string): Promise<KeptLog | undefined>
  remove(sandboxId: string): Promise<void>
  /** Drops cached state of a sandbox that has ended. The files stay. */
  release(sandboxId: string): void
}

export interface KeptLog {
  readonly sandboxId: string
  readonly sizeBytes: number
  readonly writtenAtMs: number
}

/** Time after the last entry when a log is deleted, on the node and in the object store. */
export const logKeptMs = 7 * 24 * 60 * 60 * 1000

/** A log as it was at one moment. */
export interface ExportedLog {
  readonly sandboxId: string
  /** Sorted by time. Never empty. */
  readonly entries: readonly LogEntry[]
  readonly writtenAtMs: number
}

/** Logs in the object store. Each upload of a log is an object of its own. */
export interface StoredLogs {
  /** Succeeds if the store has this upload already. */
  upload(log: Pick<ExportedLog, 'sandboxId' | 'entries'>, signal: AbortSignal): Promise<void>
  /** Removes the upload of this node whose last entry has this time. */
  remove(sandboxId: string, lastAt: number, signal: AbortSignal): Promise<void>
  /** Returns the matching entries of all uploads of all nodes. Undefined if the store has none of this sandbox. */
  read(query: LogQuery, signal: AbortSignal): Promise<LogEntry[] | undefined>
}

/** Notes which logs of this node are in the object store, and as of when. A lost note costs another upload. */
export interface LogNotes {
  find(sandboxId: string): LogNote | undefined
  set(sandboxId: string, note: LogNote): Promise<void>
  /** Forgets all others. */
  keepOnly(sandboxIds: ReadonlySet<string>): Promise<void>
}

export interface LogNote {
  /** Time of the last write before the upload. */
  readonly writtenAtMs: number
  /** Time of the last entry. */
  readonly lastAt: number
}

/** Returns the logs to delete: older than 7 days, or the oldest beyond the total size limit. */
export function outdated(
  logs: readonly KeptLog[],
  nowMs: number,
  limit = { ageMs: logKeptMs, sizeBytes: 2 * 1024 ** 3 },
): KeptLog[] {
  let size = 0
  return logs
    .toSorted((a, b) => b.writtenAtMs - a.writtenAtMs)
    .filter(({ sizeBytes, writtenAtMs }) => {
      size += sizeBytes
      return nowMs - writtenAtMs > limit.ageMs || size > limit.sizeBytes
    })
}
