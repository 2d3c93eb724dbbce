import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { outdated } from '../domain/log.ts'
import type { KeptLog, LogEntry, LogFiles, LogQuery } from '../domain/log.ts'

/**
 * Fetches what happens in sandboxes from their envds and keeps it, also after their end. The time of the last entry on
 * the disk says where to go on: so nothing is kept twice or forgotten when the agent starts anew.
 */
export interface SandboxLogs {
  /** One pass over all that runs. */
  collect(): Promise<void>
  /**
   * Fetches what the sandbox has written up to now, if it can be had within a moment: to be called before it ends or
   * stands still. Never fails.
   */
  catchUp(sandboxId: string): Promise<void>
  /** Tells of the end in its log. */
  ended(sandboxId: string, reason: string): Promise<void>
  /** Up to now, of those that run. */
  read(query: LogQuery): Promise<LogEntry[]>
  list(): Promise<KeptLog[]>
  /** Those of sandboxes that are still here stay. */
  remove(sandboxIds: readonly string[]): Promise<void>
  /** One pass: deletes what is too old or too much. */
  sweep(): Promise<void>
}

export interface LogSource {
  readonly sandboxId: string
  readonly address: string
  readonly initToken: string
  /** It has done nothing for a while. */
  readonly isAsleep: boolean
}

export interface LogPorts {
  readonly files: LogFiles
  /** Those whose envd can be asked now. */
  running(): readonly LogSource[]
  /** Undefined when it does not run. */
  addressOf(sandboxId: string): string | undefined
  /** Whether it runs or is paused here. */
  isHere(sandboxId: string): boolean
  fetch(
    source: LogSource,
    afterMs: number,
  ): Promise<{ readonly entries: readonly LogEntry[]; readonly more: boolean }>
  nowMs(): number
  /** Takes failures of this machine; a sandbox that does not answer is none. */
  onError(error: unknown): void
}

/** As many answers are in memory at a time. */
const fetchesAtOnce = 8
/** Answers for one fetch: together they hold all that envd may hold. */
const roundLimit = 4
/** So long others wait at most for a sandbox that is slow to answer. */
const momentMs = 500
/** A sandbox that has nothing to tell is asked less and less often: under gVisor each question costs it 5 ms. */
const quietPause = { firstMs: 500, longestMs: 3_500 }
/** One that does nothing writes nothing, and should not be woken. */
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

  /** Says whether there was anything. */
  async function fetchAll(source: LogSource): Promise<boolean> {
    const { sandboxId } = source
    for (let round = 0; round < roundLimit; round += 1) {
      // It may have ended or moved while this waited; what it has now is asked for in the next pass.
      if (!isThere(source)) return true
      const { entries, more } = await ports.fetch(source, await files.lastAt(sandboxId))
      await files.append(sandboxId, entries)
      if (!more || entries.length === 0) return entries.length > 0 || round > 0
    }
    return true
  }

  /** Its address is somebody else's once it has ended or was resumed, and envds that began as one know the same secret. */
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

  /** One after the other for each sandbox. */
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
    // Whoever reads gets what a quiet one may have to tell by now, but does not wait again for one that did not answer.
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
      resting.delete(sandboxId)
    },

    async read(query) {
      await catchUp(query.sandboxId)
      return files.read(query)
    },

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
