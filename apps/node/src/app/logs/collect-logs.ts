import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { outdated } from '../../domain/sandboxes/log.ts'
import type {
  ExportedLog,
  KeptLog,
  LogEntry,
  LogFiles,
  LogQuery,
  PrintedLine,
  StoredLogs,
} from '../../domain/sandboxes/log.ts'
import { createPrintedLines } from './printed-lines.ts'

/**
 * Collects log entries from the envds of sandboxes and keeps them, also after the sandbox has ended. The time of the
 * last stored entry is the cursor, so a restart of the agent neither duplicates nor loses entries.
 */
export interface SandboxLogs {
  /** One pass over all running sandboxes. */
  collect(): Promise<void>
  /**
   * Fetches the entries written so far, with a short time limit. Called before a sandbox ends or is paused. Never
   * fails.
   */
  catchUp(sandboxId: string): Promise<void>
  /** Appends an entry about the end of the sandbox. */
  ended(sandboxId: string, reason: string): Promise<void>
  /** Another node has the sandbox, and continues its log. */
  forget(sandboxId: string): void
  /** Calls `listener` after each end, once the log has its entry. */
  onEnded(listener: (sandboxId: string) => void): void
  /**
   * Fetches new entries first when the sandbox runs. A log that this node does not have is read from the object store, if
   * there is one.
   */
  read(query: LogQuery): Promise<LogEntry[]>
  /** Returns all entries that are on disk. Undefined if there are none. */
  export(sandboxId: string): Promise<ExportedLog | undefined>
  /** Appends those entries that are newer than all that are on disk. */
  import(sandboxId: string, entries: readonly LogEntry[]): Promise<void>
  /** Returns the last printed line of each sandbox that is here and has one. Asks no sandbox. */
  lastPrinted(sandboxIds: readonly string[]): Promise<ReadonlyMap<string, PrintedLine>>
  list(): Promise<KeptLog[]>
  /** Keeps the logs of sandboxes that are still here. */
  remove(sandboxIds: readonly string[]): Promise<void>
  /** One pass: deletes logs that are too old or too large. */
  sweep(): Promise<void>
}

export interface LogSource {
  readonly sandboxId: string
  readonly address: string
  readonly initToken: string
  /** Whether the sandbox has been idle for a while. */
  readonly isAsleep: boolean
}

export interface LogPorts {
  readonly files: LogFiles
  /** Logs of all nodes in the object store. Absent: there is none. */
  readonly stored?: Pick<StoredLogs, 'read'> | undefined
  /** Sandboxes whose envd can be asked now. */
  running(): readonly LogSource[]
  /** Undefined when the sandbox does not run. */
  addressOf(sandboxId: string): string | undefined
  /** Whether the sandbox is running, paused or quarantined here. */
  isHere(sandboxId: string): boolean
  fetch(
    source: LogSource,
    afterMs: number,
  ): Promise<{ readonly entries: readonly LogEntry[]; readonly more: boolean }>
  nowMs(): number
  /** Receives failures of this machine. A sandbox that does not answer is not one. */
  onError(error: unknown): void
}

/** Also limits how many answers are in memory at a time. */
const fetchesAtOnce = 8
/** Requests per fetch: together they can return everything that envd buffers. */
const roundLimit = 4
/** Maximum wait for a slow sandbox. */
const momentMs = 500
/** Back-off for sandboxes without new entries: under gVisor each request costs the sandbox 5 ms of CPU. */
const quietPause = { firstMs: 500, longestMs: 3_500 }
/** Extra pause for idle sandboxes: they write nothing and should not be woken. */
const asleepPauseMs = 60_000
const failurePause = { firstMs: 1_000, longestMs: 30_000 }
const storeLimitMs = 8_000

interface Rest {
  readonly why: 'quiet' | 'failed'
  readonly pauseMs: number
  readonly untilMs: number
}

export function createSandboxLogs(ports: LogPorts): SandboxLogs {
  const { files } = ports
  const gate = limitConcurrency(fetchesAtOnce)
  const underway = new Map<string, Promise<unknown>>()
  const rests = createRests(ports.nowMs)
  const endListeners: ((sandboxId: string) => void)[] = []
  const printed = createPrintedLines({ ...ports, inTurn })

  /** Returns whether there were new entries. */
  async function fetchAll(source: LogSource): Promise<boolean> {
    const { sandboxId } = source
    for (let round = 0; round < roundLimit; round += 1) {
      // The sandbox may have ended or moved while this waited; the next pass asks again.
      if (!isThere(source)) return true
      const { entries, more } = await ports.fetch(source, await files.lastAt(sandboxId))
      await files.append(sandboxId, entries)
      await printed.refresh(sandboxId)
      if (!more || entries.length === 0) return entries.length > 0 || round > 0
    }
    return true
  }

  /**
   * Checks that the sandbox still has this address. After its end or a resume, the address may belong to another
   * sandbox, and envds restored from the same memory share one secret.
   */
  const isThere = ({ sandboxId, address }: LogSource) => ports.addressOf(sandboxId) === address

  async function attempt(source: LogSource): Promise<void> {
    const { sandboxId } = source
    try {
      if (await fetchAll(source)) rests.end(sandboxId)
      else rests.begin(sandboxId, 'quiet')
    } catch (error) {
      if (!(error instanceof Fault)) ports.onError(error)
      rests.begin(sandboxId, 'failed')
    }
  }

  /** Serializes tasks per sandbox. */
  function inTurn<T>(sandboxId: string, task: () => Promise<T>): Promise<T> {
    const before = underway.get(sandboxId)?.catch(() => {}) ?? Promise.resolve()
    const done = before.then(task).finally(() => {
      if (underway.get(sandboxId) === done) underway.delete(sandboxId)
    })
    underway.set(sandboxId, done)
    return done
  }

  async function catchUp(sandboxId: string): Promise<void> {
    const source = ports.running().find((one) => one.sandboxId === sandboxId)
    // Ask quiet sandboxes, which may have new entries, but do not wait again for one that did not answer.
    if (!source || rests.isActive(source, 'failed')) return
    const fetched = inTurn(sandboxId, () => attempt(source))
    await Promise.race([fetched, sleep(momentMs, undefined, { ref: false })])
  }

  function forget(sandboxId: string): void {
    files.release(sandboxId)
    printed.release(sandboxId)
    rests.end(sandboxId)
  }

  return {
    async collect() {
      const due = ports
        .running()
        .filter((one) => !underway.has(one.sandboxId) && !rests.isActive(one))
      await Promise.all(
        due.map((source) => gate(() => inTurn(source.sandboxId, () => attempt(source)))),
      )
    },

    catchUp,

    async ended(sandboxId, reason) {
      await inTurn(sandboxId, async () => {
        const at = Math.max(ports.nowMs(), (await files.lastAt(sandboxId)) + 1)
        const fields = { logger: 'node', reason }
        await files.append(sandboxId, [
          { at, level: 'info', message: `Sandbox ended: it ${reason}`, fields },
        ])
      }).catch(ports.onError)
      forget(sandboxId)
      for (const listener of endListeners) listener(sandboxId)
    },

    forget,

    onEnded: (listener) => void endListeners.push(listener),

    async read(query) {
      await catchUp(query.sandboxId)
      return readKept(ports, query)
    },

    export: (sandboxId) => inTurn(sandboxId, () => exportLog(files, sandboxId)),

    import: (sandboxId, entries) =>
      inTurn(sandboxId, async () => {
        const lastAt = await files.lastAt(sandboxId)
        const newer = entries.filter(({ at }) => at > lastAt)
        await files.append(sandboxId, newer)
      }),

    lastPrinted: printed.list,

    ...removalMethods(ports),
  }
}

function removalMethods({
  files,
  isHere,
  nowMs,
}: LogPorts): Pick<SandboxLogs, 'list' | 'remove' | 'sweep'> {
  return {
    list: () => files.list(),

    async remove(sandboxIds) {
      for (const sandboxId of sandboxIds) {
        if (!isHere(sandboxId)) await files.remove(sandboxId)
      }
    },

    async sweep() {
      for (const { sandboxId } of outdated(await files.list(), nowMs())) {
        if (!isHere(sandboxId)) await files.remove(sandboxId)
      }
    },
  }
}

async function readKept(
  { files, stored, isHere }: Pick<LogPorts, 'files' | 'stored' | 'isHere'>,
  query: LogQuery,
): Promise<LogEntry[]> {
  const { sandboxId } = query
  const isKept = !stored || isHere(sandboxId) || (await files.find(sandboxId)) !== undefined
  if (isKept) return files.read(query)
  return (await stored.read(query, AbortSignal.timeout(storeLimitMs))) ?? []
}

async function exportLog(files: LogFiles, sandboxId: string): Promise<ExportedLog | undefined> {
  // The time is read before the entries, so that a later write shows as a later time.
  const kept = await files.find(sandboxId)
  if (!kept) return undefined
  const entries = await files.read({ sandboxId, newestFirst: false, limit: Infinity })
  return entries.length > 0
    ? { sandboxId, entries, writtenAtMs: Math.floor(kept.writtenAtMs) }
    : undefined
}

/** Pauses between the requests to one sandbox. */
function createRests(nowMs: () => number) {
  const resting = new Map<string, Rest>()
  return {
    begin(sandboxId: string, why: Rest['why']): void {
      const { firstMs, longestMs } = why === 'failed' ? failurePause : quietPause
      const before = resting.get(sandboxId)
      const pauseMs = before?.why === why ? Math.min(before.pauseMs * 2, longestMs) : firstMs
      resting.set(sandboxId, { why, pauseMs, untilMs: nowMs() + pauseMs })
    },
    end: (sandboxId: string) => void resting.delete(sandboxId),
    isActive({ sandboxId, isAsleep }: LogSource, why?: Rest['why']): boolean {
      const found = resting.get(sandboxId)
      if (!found || (why && found.why !== why)) return false
      const moreMs = isAsleep && found.why === 'quiet' ? asleepPauseMs : 0
      return found.untilMs + moreMs > nowMs()
    },
  }
}
