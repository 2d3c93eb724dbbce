import type { LogLevel } from './log.ts'

/** What builds say while they are under way. The store keeps it, since it outlives the node's part in them. */
export interface BuildLogEntry {
  readonly at: Date
  readonly level: LogLevel
  /** "base", the number of a step counted from one, or "finalize". */
  readonly step: string
  readonly message: string
}

export interface BuildLogStore {
  /** `position` is that of the first one: entries are counted from zero. */
  append(buildId: string, position: number, entries: readonly BuildLogEntry[]): Promise<void>
  read(buildId: string, query: BuildLogQuery): Promise<BuildLogEntry[]>
  /** What builds said that were over before this moment, of so many at most. Gives of how many. */
  forget(endedBefore: Date, limit: number): Promise<number>
}

export interface BuildLogQuery {
  readonly minLevel?: LogLevel | undefined
  readonly step?: string | undefined
  readonly from?: Date | undefined
  /** Exclusive. */
  readonly before?: Date | undefined
  readonly newestFirst?: boolean
  /** How many of those that match are passed over. */
  readonly offset?: number
  readonly limit: number
}

const mostEntries = 10_000
const longestMessage = 4_000

/** What is kept of the entry at this position: one that is too long is cut, and so is a log that is. */
export function keptEntry(entry: BuildLogEntry, position: number): BuildLogEntry | undefined {
  if (position > mostEntries) return undefined
  if (position === mostEntries) {
    const message = `The log is longer than ${mostEntries} entries: the rest was dropped`
    return { ...entry, level: 'warn', message }
  }
  // No store of ours can hold NUL.
  const message = entry.message.slice(0, longestMessage).toWellFormed().replaceAll('\0', '\ufffd')
  return { ...entry, message }
}
