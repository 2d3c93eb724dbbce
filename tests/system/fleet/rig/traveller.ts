/**
 * A sandbox that a client pauses and resumes all the time. It counts in its memory. After each resume the count must be the last one
 * that was acknowledged: an older one would be the content of an earlier pause.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'e2b'
import type { Random } from '../../mutations.ts'
import { shell } from '../../shell.ts'
import type { Connection } from './support.ts'
import { createSandbox, lifetimeMs, startProgram, until } from './support.ts'

export interface Traveller {
  readonly sandboxId: string
  /** Pauses and resumes that succeeded. */
  done(): number
  readonly failures: readonly string[]
  /** Throws if a request has shown content that none may show. */
  checkContent(): void
  /** Counts, pauses and resumes until `stop`. */
  start(): { stop(): Promise<void> }
  /** Waits until the sandbox runs, and checks its content. */
  settle(): Promise<void>
}

const limits = { timeoutMs: lifetimeMs, requestTimeoutMs: 120_000 }
const commandLimitMs = 120_000
const retryMs = 200

/** Content that no request may ever show. */
class WrongContent extends Error {}

/** `maxPauseMs`: longest time between a pause and its resume. After a long one, the object store has the content. */
export async function createTraveller(
  connection: Connection,
  { random, maxPauseMs }: { readonly random: Random; readonly maxPauseMs: number },
): Promise<Traveller> {
  const sandbox = await createSandbox(connection)
  const { sandboxId } = sandbox
  const program = await startProgram(sandbox)
  await shell(sandbox, 'echo 0 > /dev/shm/count')
  const { count, check } = createCounter(sandbox, program)
  let done = 0
  let wrong: WrongContent | undefined
  const failures: string[] = []
  const pause = async () => {
    await sandbox.pause({ requestTimeoutMs: limits.requestTimeoutMs })
    done += 1
  }
  const resume = async () => {
    await sandbox.connect(limits)
    done += 1
  }
  const attempt = async (work: () => Promise<void>): Promise<boolean> => {
    try {
      await work()
      return true
    } catch (error) {
      if (error instanceof WrongContent) wrong = error
      failures.push(`${work.name}: ${String(error)}`)
      await sleep(retryMs)
      return false
    }
  }
  const checkContent = () => {
    if (wrong) throw wrong
  }
  return {
    ...{ sandboxId, failures, checkContent },
    done: () => done,
    start: () =>
      repeatUntilStopped(async (signal) => {
        await attempt(count)
        const rest = () => sleep(random(maxPauseMs), undefined, { signal }).catch(() => {})
        if (await attempt(pause)) await rest()
        if (await attempt(resume)) await attempt(check)
      }),
    async settle() {
      const isBack = async () => {
        checkContent()
        return (await attempt(resume)) && (await attempt(check))
      }
      await until(`${sandboxId} to run`, isBack).catch((error: unknown) => {
        throw new Error(failures.slice(-3).join('\n'), { cause: error })
      })
    },
  }
}

/** Count in the memory of a sandbox. It only grows, also when a command whose client gave up comes late. */
function createCounter(sandbox: Sandbox, program: string) {
  let [attempted, acknowledged] = [0, 0]
  return {
    async count() {
      attempted += 1
      const target = attempted
      const grow = `[ "$(cat /dev/shm/count)" -ge ${target} ] || echo ${target} > /dev/shm/count`
      const command = `flock /dev/shm/lock sh -c '${grow}'`
      const { code, stderr } = await shell(sandbox, command, { timeoutMs: commandLimitMs })
      if (code !== 0) throw new Error(`the command ended with ${code}: ${stderr}`)
      acknowledged = target
    },
    async check() {
      const expected = acknowledged
      const command = `${program} && cat /dev/shm/count`
      const { code, stdout, stderr } = await shell(sandbox, command, { timeoutMs: commandLimitMs })
      const found = Number(stdout.split('\n')[1])
      if (code === 0 && found >= expected && found <= attempted) return
      const range = `from ${expected} to ${attempted}`
      const seen = `${code}, ${stdout}${stderr}`
      throw new WrongContent(`${sandbox.sandboxId}: count ${range} expected: ${seen}`)
    },
  }
}

function repeatUntilStopped(pass: (signal: AbortSignal) => Promise<void>) {
  const stopping = new AbortController()
  const work = async () => {
    while (!stopping.signal.aborted) await pass(stopping.signal)
  }
  const working = work()
  return {
    async stop() {
      stopping.abort()
      await working
    },
  }
}
