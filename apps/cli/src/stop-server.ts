import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { lockDataDir } from '@atoll/server/lock'

/**
 * Stops the server of a data directory and takes the directory lock, so that no other server starts during cleanup.
 * The lock shows whether a server runs; the PID file only names its process.
 */

export interface StopResult extends AsyncDisposable {
  /** Undefined if no server was running. */
  readonly stopped?: { readonly pid: number; readonly by: 'SIGTERM' | 'SIGKILL' }
}

export interface StopLimits {
  /** Time to exit after SIGTERM. */
  readonly termMs: number
  /** Time to exit after SIGKILL. */
  readonly killMs: number
}

const defaultLimits: StopLimits = { termMs: 15_000, killMs: 15_000 }

export async function stopServer(dataDir: string, limits = defaultLimits): Promise<StopResult> {
  const lock = await tryLock(dataDir)
  if (lock) return toResult(lock)
  const pid = await readPid(dataDir)
  if (pid === undefined || !(await isServer(pid))) {
    const message =
      `A server uses ${dataDir}, but ${join(dataDir, 'server.pid')} does not name its process. ` +
      'Stop the server by hand, then run this again'
    throw new Fault('conflict', 'server_not_found', message)
  }
  process.kill(pid, 'SIGTERM')
  const lockAfterTerm = await waitForLock(dataDir, pid, limits.termMs)
  if (lockAfterTerm) return toResult(lockAfterTerm, { pid, by: 'SIGTERM' })
  if (await isServer(pid)) process.kill(pid, 'SIGKILL')
  const lockAfterKill = await waitForLock(dataDir, pid, limits.killMs)
  if (lockAfterKill) return toResult(lockAfterKill, { pid, by: 'SIGKILL' })
  throw new Fault(
    'timeout',
    'server_still_there',
    `The server (PID ${pid}) did not exit within ${limits.killMs / 1000} s of SIGKILL`,
  )
}

function toResult(lock: AsyncDisposable, stopped?: StopResult['stopped']): StopResult {
  return { ...(stopped && { stopped }), [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() }
}

/** Returns the lock after the server has exited, or undefined on timeout. */
async function waitForLock(
  dataDir: string,
  pid: number,
  timeoutMs: number,
): Promise<AsyncDisposable | undefined> {
  const probe = async () => ((await isServer(pid)) ? undefined : tryLock(dataDir))
  try {
    return await waitFor('the server to end', probe, { timeoutMs })
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'timeout') return undefined
    throw thrown
  }
}

async function tryLock(dataDir: string): Promise<AsyncDisposable | undefined> {
  try {
    return await lockDataDir(dataDir)
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'conflict') return undefined
    throw thrown
  }
}

async function readPid(dataDir: string): Promise<number | undefined> {
  const text = await readIfExists(join(dataDir, 'server.pid'))
  return text && /^[1-9]\d{0,9}\n?$/.test(text) ? Number(text) : undefined
}

/** Names of the bundle and of the source, also in other releases. */
const programName = /(^|\/)(atoll|atoll\.mjs|main\.ts)$/

/** Guards against a stale PID file: the kernel may have given the PID to another process. */
async function isServer(pid: number): Promise<boolean> {
  const commandLine = await readIfExists(`/proc/${pid}/cmdline`)
  return commandLine?.split('\0').some((word) => programName.test(word)) ?? false
}

function readIfExists(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // ESRCH: the process exited after its file was opened.
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  })
}
