import type { SandboxLogEntry } from '@atoll/client/replies'

const maxKept = 5_000

/** Adds entries to a log, in order of time, each once. Timestamps are unique within a sandbox. */
export function mergeLog(
  known: readonly SandboxLogEntry[],
  more: readonly SandboxLogEntry[],
): readonly SandboxLogEntry[] {
  const seen = new Set(known.map(({ timestamp }) => timestamp))
  const added = more.filter(({ timestamp }) => !seen.has(timestamp))
  if (added.length === 0) return known
  return [...known, ...added]
    .toSorted((a, b) => (a.timestamp < b.timestamp ? -1 : 1))
    .slice(-maxKept)
}

/** Returns the cursor for the entries after the last known one, in Unix milliseconds. */
export function nextCursor(known: readonly SandboxLogEntry[]): number | undefined {
  const last = known.at(-1)
  return last && Date.parse(last.timestamp)
}
