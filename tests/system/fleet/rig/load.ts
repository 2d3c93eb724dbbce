/** Clients that use a fleet all the time, and note what fails. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Sandbox } from 'e2b'
import type { Connection } from './support.ts'

export interface Failure {
  readonly what: string
  readonly message: string
  readonly from: number
  readonly to: number
}

export interface Load {
  /** Operations that succeeded so far. */
  done(): number
  readonly failures: readonly Failure[]
  /** Ends after the operations under way. */
  stop(): Promise<void>
}

/** Part of the message when a command ran in another sandbox. */
export const wrongSandbox = 'instead of'
const usualLimitMs = 600_000
const pauseMs = 200

/**
 * Starts clients that create a sandbox, run a command in it and kill it, over and over, and one for each of the given
 * sandboxes that runs commands in it.
 */
export function startLoad(
  connection: Connection,
  options: {
    readonly clients: number
    readonly sandboxes: readonly Sandbox[]
    /** Limit of one operation. */
    readonly limitMs?: number
  },
): Load {
  const { limitMs = usualLimitMs } = options
  const failures: Failure[] = []
  let done = 0
  let isStopping = false
  const attempt = async <T>(what: string, work: () => Promise<T>): Promise<T | undefined> => {
    const from = performance.now()
    try {
      const result = await work()
      done += 1
      return result
    } catch (error) {
      failures.push({ what, message: String(error), from, to: performance.now() })
      await sleep(pauseMs) // a client that repeats at once would slow down what it waits for
      return undefined
    }
  }
  const limits = { timeoutMs: limitMs, requestTimeoutMs: limitMs }
  const echo = (sandbox: Sandbox) =>
    attempt('command', async () => {
      const { stdout } = await sandbox.commands.run('hostname', limits)
      if (stdout.trim() !== sandbox.sandboxId)
        throw new Error(`the command ran in ${stdout.trim()} ${wrongSandbox} ${sandbox.sandboxId}`)
    })
  const create = () =>
    attempt('create', () =>
      Sandbox.create('base', { ...connection, timeoutMs: 3_600_000, requestTimeoutMs: limitMs }),
    )
  const repeat = async (work: () => Promise<void>) => {
    while (!isStopping) await work()
  }
  const clients = Array.from({ length: options.clients }, () =>
    repeat(async () => {
      const sandbox = await create()
      if (!sandbox) return
      await echo(sandbox)
      await attempt('kill', () => sandbox.kill({ requestTimeoutMs: limitMs }))
    }),
  )
  const users = options.sandboxes.map((sandbox) => repeat(() => echo(sandbox)))
  return {
    done: () => done,
    failures,
    async stop() {
      isStopping = true
      await Promise.all([...clients, ...users])
    },
  }
}
