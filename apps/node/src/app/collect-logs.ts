import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { createGate } from '@atoll/kit/gate'
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
}

export interface LogPorts {
  readonly files: LogFiles
  /** Those whose envd can be asked now. */
  running(): readonly LogSource[]
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
const firstPauseMs = 1_000
const longestPauseMs = 30_000

export function createSandboxLogs(ports: LogPorts): SandboxLogs {
  const { files } = ports
  const gate = createGate(fetchesAtOnce)
  const underway = new Map<string, Promise<void>>()
  const failing = new Map<string, { readonly pauseMs: number; readonly untilMs: number }>()

  async function fetchAll(source: LogSource): Promise<void> {
    const { sandboxId } = source
    for (let round = 0; round < roundLimit; round += 1) {
      const { entries, more } = await ports.fetch(source, await files.lastAt(sandboxId))
      await files.append(sandboxId, entries)
      if (!more || entries.length === 0) return
    }
  }

  async function attempt(source: LogSource): Promise<void> {
    const { sandboxId } = source
    if (!ports.isHere(sandboxId)) return // it ended while this waited for its turn
    try {
      await fetchAll(source)
      failing.delete(sandboxId)
    } catch (error) {
      if (!(error instanceof Fault)) ports.onError(error)
      const pauseMs = Math.min(
        (failing.get(sandboxId)?.pauseMs ?? firstPauseMs / 2) * 2,
        longestPauseMs,
      )
      failing.set(sandboxId, { pauseMs, untilMs: ports.nowMs() + pauseMs })
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

  /** Whoever does not answer is not asked all the time. */
  function isDue({ sandboxId }: LogSource): boolean {
    return (failing.get(sandboxId)?.untilMs ?? 0) <= ports.nowMs()
  }

  async function catchUp(sandboxId: string): Promise<void> {
    const source = ports.running().find((one) => one.sandboxId === sandboxId)
    if (!source || !isDue(source)) return
    const fetched = inTurn(sandboxId, () => attempt(source))
    await Promise.race([fetched, sleep(momentMs, undefined, { ref: false })])
  }

  return {
    async collect() {
      const due = ports.running().filter((one) => !underway.has(one.sandboxId) && isDue(one))
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
      failing.delete(sandboxId)
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
