import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Command, Commands, EnvdEndpoint, OnLine } from '../../domain/sandboxes/commands.ts'

/** Retry delays: short at first, so a program that starts fast is not waited for long. */
const retryMs = { first: 50, longest: 2_000 }
const keptLines = 20

export interface ReadyCheck {
  readonly command: Command
  /** Text of the ready command, for the error message. */
  readonly shown: string
  readonly limitMs: number
  /**
   * Receives the output of the last attempt only: a ready command that repeats its complaint would drown everything
   * else.
   */
  readonly onLine: OnLine
  readonly signal: AbortSignal
}

/** Runs the ready command until it succeeds. Throws a `timeout` fault, `not_ready`, at the limit. */
export async function waitUntilReady(
  commands: Pick<Commands, 'run'>,
  endpoint: EnvdEndpoint,
  check: ReadyCheck,
): Promise<void> {
  const limit = AbortSignal.timeout(check.limitMs)
  const signal = AbortSignal.any([check.signal, limit])
  const attempts = createAttempts()
  try {
    for (let waitMs = retryMs.first; ; waitMs = Math.min(waitMs * 2, retryMs.longest)) {
      const onLine = attempts.begin()
      const { exitCode } = await commands.run(endpoint, check.command, { onLine, signal })
      attempts.end(exitCode)
      if (exitCode === 0) break
      await sleep(waitMs, undefined, { signal })
    }
  } catch (error) {
    if (!limit.aborted || check.signal.aborted) throw error
    await attempts.reportFailure(check.onLine)
    throw notReady(check, attempts.describe(), error)
  }
  await attempts.report(check.onLine)
}

interface Attempts {
  /** Starts an attempt and returns the receiver of its output. */
  begin(): OnLine
  end(exitCode: number | undefined): void
  /** Writes the output of the last attempt. */
  report(onLine: OnLine): Promise<void>
  /** Writes the last output of any attempt: the last attempt may have been stopped before it printed. */
  reportFailure(onLine: OnLine): Promise<void>
  describe(): string
}

type Line = Parameters<OnLine>

function createAttempts(): Attempts {
  let count = 0
  let isRunning = false
  let exitCode: number | undefined
  let lines: Line[] = []
  let before: Line[] = []
  return {
    begin() {
      count += 1
      isRunning = true
      if (lines.length > 0) before = lines
      const own: Line[] = []
      lines = own
      return async (...line) => {
        own.push(line)
        if (own.length > keptLines) own.shift()
      }
    },
    end(code) {
      isRunning = false
      exitCode = code
    },
    async report(onLine) {
      for (const line of lines) await onLine(...line)
    },
    async reportFailure(onLine) {
      for (const line of lines.length > 0 ? lines : before) await onLine(...line)
    },
    describe() {
      if (isRunning && count === 1) return 'the first attempt did not end'
      const status = exitCode === undefined ? 'killed' : `exit status ${exitCode}`
      const ended = isRunning ? count - 1 : count
      return `${ended} attempts, the last one with ${status}${isRunning ? ', and one that did not end' : ''}`
    },
  }
}

function notReady({ limitMs, shown }: ReadyCheck, attempts: string, cause: unknown): Fault {
  return new Fault(
    'timeout',
    'not_ready',
    `The sandbox was not ready within ${limitMs / 1000} seconds: ${shown} did not succeed (${attempts})`,
    { cause },
  )
}
