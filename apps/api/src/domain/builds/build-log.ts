import type { LogLevel } from '../log.ts'

/** Log entry of a build. The store keeps build logs because they outlive the build on the node. */
export interface BuildLogEntry {
  readonly at: Date
  readonly level: LogLevel
  /** "base", the number of a step (the first is 1), or "finalize". */
  readonly step: string
  readonly message: string
}

export interface BuildLogStore {
  /** `position` is the index of the first entry in the log of the build, starting at 0. */
  append(buildId: string, position: number, entries: readonly BuildLogEntry[]): Promise<void>
  read(buildId: string, query: BuildLogQuery): Promise<BuildLogEntry[]>
  /** Deletes the logs of at most `limit` builds that finished before `endedBefore`. Returns the number of builds. */
  forget(endedBefore: Date, limit: number): Promise<number>
}

export interface BuildLogQuery {
  readonly minLevel?: LogLevel | undefined
  readonly step?: string | undefined
  readonly from?: Date | undefined
  /** Exclusive. */
  readonly before?: Date | undefined
  readonly newestFirst?: boolean
  /** Number of matching entries to skip. */
  readonly offset?: number
  readonly limit: number
}

const maxEntries = 10_000
const longestMessage = 4_000

/** Truncates a long message. Returns undefined for entries beyond the maximum length of a log. */
export function keptEntry(entry: BuildLogEntry, position: number): BuildLogEntry | undefined {
  if (position > maxEntries) return undefined
  if (position === maxEntries) {
    const message = `The log is longer than ${maxEntries} entries: the rest was dropped`
    return { ...entry, level: 'warn', message }
  }
  // PostgreSQL cannot store NUL.
  const message = entry.message.slice(0, longestMessage).toWellFormed().replaceAll('\0', '\ufffd')
  return { ...entry, message }
}
