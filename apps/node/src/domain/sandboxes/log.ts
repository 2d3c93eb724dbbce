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
  remove(sandboxId: string): Promise<void>
  /** Drops cached state of a sandbox that has ended. The files stay. */
  release(sandboxId: string): void
}

export interface KeptLog {
  readonly sandboxId: string
  readonly sizeBytes: number
  readonly writtenAtMs: number
}

/** Returns the logs to delete: older than 7 days, or the oldest beyond the total size limit. */
export function outdated(
  logs: readonly KeptLog[],
  nowMs: number,
  limit = { ageMs: 7 * 24 * 60 * 60 * 1000, sizeBytes: 2 * 1024 ** 3 },
): KeptLog[] {
  let size = 0
  return logs
    .toSorted((a, b) => b.writtenAtMs - a.writtenAtMs)
    .filter(({ sizeBytes, writtenAtMs }) => {
      size += sizeBytes
      return nowMs - writtenAtMs > limit.ageMs || size > limit.sizeBytes
    })
}
