/** What happened in a sandbox, in entries of which no two have the same time. */

export const logLevels = ['debug', 'info', 'warn', 'error'] as const

export type LogLevel = (typeof logLevels)[number]

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

export interface LogQuery {
  readonly sandboxId: string
  readonly fromMs?: number | undefined
  /** Exclusive. */
  readonly beforeMs?: number | undefined
  /** Which of them when there are more than `limit`, and in which order. */
  readonly newestFirst: boolean
  readonly limit: number
  readonly minLevel?: LogLevel | undefined
  /** In the message or a field, letter for letter. */
  readonly search?: string | undefined
}

export function isWanted(entry: LogEntry, { minLevel = 'debug', search }: LogQuery): boolean {
  if (logLevels.indexOf(entry.level) < logLevels.indexOf(minLevel)) return false
  if (!search) return true
  return [entry.message, ...Object.values(entry.fields)].some((text) => text.includes(search))
}

/** What is kept on the disk. Calls about one sandbox come one after the other. */
export interface LogFiles {
  /** The time of the newest entry; 0 where there is none. */
  lastAt(sandboxId: string): Promise<number>
  /** `entries` are later than what is there. The oldest go when there are too many. */
  append(sandboxId: string, entries: readonly LogEntry[]): Promise<void>
  read(query: LogQuery): Promise<LogEntry[]>
  list(): Promise<KeptLog[]>
  remove(sandboxId: string): Promise<void>
  /** It has ended: nothing about it has to be remembered but what is on the disk. */
  release(sandboxId: string): void
}

export interface KeptLog {
  readonly sandboxId: string
  readonly sizeBytes: number
  readonly writtenAtMs: number
}

/** Which logs have to go: those of 7 days ago, and the oldest of too many. */
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
