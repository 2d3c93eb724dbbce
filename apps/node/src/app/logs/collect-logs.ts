import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { outdated } from '../../domain/sandboxes/log.ts'
import type {
  KeptLog,
  LogEntry,
  LogFiles,
  LogQuery,
  PrintedLine,
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
  /** Fetches new entries first when the sandbox runs. */
  read(query: LogQuery): Promise<LogEntry[]>
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

interface Rest {
  readonly why: 'quiet' | 'failed'
  readonly pauseMs: number
  readonly untilMs: number
}

export function createSandboxLogs(ports: LogPorts): SandboxLogs {
  const { files } = ports
  const gate = limitConcurrency(fetchesAtOnce)
  const underway = new Map<string, Promise<void>>()
  const resting = new Map<string, Rest>()
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
      if (await fetchAll(source)) resting.delete(sandboxId)
      else rest(sandboxId, 'quiet')
    } catch (error) {
      if (!(error instanceof Fault)) ports.onError(error)
      rest(sandboxId, 'failed')
    }
  }

  /** Serializes tasks per sandbox. */
  function inTurn(sandboxId: string, task: () => Promise<void>): Promise<void> {
    const before = underway.get(sandboxId)?.catch(() => {}) ?? Promise.resolve()
    const done = before.then(task).finally(() => {
      if (underway.get(sandboxId) === done) underway.delete(sandboxId)
    })
    underway.set(sandboxId, done)
    return done
  }

  function rest(sandboxId: string, why: Rest['why']): void {
    const { firstMs, longestMs } = why === 'failed' ? failurePause : quietPause
    const before = resting.get(sandboxId)
    const pauseMs = before?.why === why ? Math.min(before.pauseMs * 2, longestMs) : firstMs
    resting.set(sandboxId, { why, pauseMs, untilMs: ports.nowMs() + pauseMs })
  }

  function isResting({ sandboxId, isAsleep }: LogSource, why?: Rest['why']): boolean {
    const found = resting.get(sandboxId)
    if (!found || (why && found.why !== why)) return false
    const moreMs = isAsleep && found.why === 'quiet' ? asleepPauseMs : 0
    return found.untilMs + moreMs > ports.nowMs()
  }

  async function catchUp(sandboxId: string): Promise<void> {
    const source = ports.running().find((one) => one.sandboxId === sandboxId)
    // Ask quiet sandboxes, which may have new entries, but do not wait again for one that did not answer.
    if (!source || isResting(source, 'failed')) return
    const fetched = inTurn(sandboxId, () => attempt(source))
    await Promise.race([fetched, sleep(momentMs, undefined, { ref: false })])
  }

  return {
    async collect() {
      const due = ports.running().filter((one) => !underway.has(one.sandboxId) && !isResting(one))
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
      files.release(sandboxId)
      printed.release(sandboxId)
      resting.delete(sandboxId)
    },

    async read(query) {
      await catchUp(query.sandboxId)
      return files.read(query)
    },

    lastPrinted: printed.list,

    list: () => files.list(),

    async remove(sandboxIds) {
      for (const sandboxId of sandboxIds) {
        if (!ports.isHere(sandboxId)) await files.remove(sandboxId)
      }
    },

    async sweep() {
      for (const { sandboxId } of outdated(await files.list(), ports.nowMs())) {
        if (!ports.isHere(sandboxId)) await files.remove(sandboxId)
      }
    },
  }
}
