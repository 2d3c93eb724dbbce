import type { ProcessEnd } from '../domain/process/process-end.ts'

/** A process that exited recently. Clients can still connect to it and get its end event. */
export interface ExitedProcess {
  readonly pid: number
  readonly tag?: string | undefined
  readonly end: ProcessEnd
}

/** Keeps exited processes for 30 s, at most 1,000 of them. */
export function createExitedProcesses(nowMs: () => number) {
  const entries: { readonly exited: ExitedProcess; readonly untilMs: number }[] = []
  return {
    add(exited: ExitedProcess): void {
      dropExpired()
      entries.push({ exited, untilMs: nowMs() + keepMs })
      if (entries.length > entryLimit) entries.shift()
    },
    /** Returns the newest match. */
    find(matches: (exited: ExitedProcess) => boolean): ExitedProcess | undefined {
      dropExpired()
      return entries.findLast((entry) => matches(entry.exited))?.exited
    },
    /** Drops entries whose pid or tag a new process has taken over. */
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
