import type { ProcessEnd } from '../domain/process/process-end.ts'

/** A process that ended a moment ago: one can still connect to it and learn how. */
export interface ExitedProcess {
  readonly pid: number
  readonly tag?: string | undefined
  readonly end: ProcessEnd
}

/** Remembers ended processes for a while, and never more than a few. */
export function createExitedProcesses(nowMs: () => number) {
  const entries: { readonly exited: ExitedProcess; readonly untilMs: number }[] = []
  return {
    add(exited: ExitedProcess): void {
      dropExpired()
      entries.push({ exited, untilMs: nowMs() + keepMs })
      if (entries.length > entryLimit) entries.shift()
    },
    /** The newest one that matches. */
    find(matches: (exited: ExitedProcess) => boolean): ExitedProcess | undefined {
      dropExpired()
      return entries.findLast((entry) => matches(entry.exited))?.exited
    },
    /** A new process takes over its pid and tag. */
    supersede(pid: number, tag: string | undefined): void {
      const kept = entries.filter(
        ({ exited }) => exited.pid !== pid && (tag === undefined || exited.tag !== tag),
      )
      entries.splice(0, entries.length, ...kept)
    },
  }

  function dropExpired(): void {
    const now = nowMs()
    while (entries[0] && entries[0].untilMs <= now) entries.shift()
  }
}

const keepMs = 30_000
const entryLimit = 1000
