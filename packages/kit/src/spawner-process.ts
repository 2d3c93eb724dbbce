/**
 * The spawner of the guest program: a small process that starts others for a large one. Forking a whole Node.js stops it
 * for as long as its memory is large, and is slow above all under gVisor. It is started at the first need, and again if
 * it ended.
 */
import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { kill } from 'node:process'
import type { Readable, Writable } from 'node:stream'
import { getSystemErrorName } from 'node:util'
import type { Exit } from './exit.ts'
import { createReplyReader, encodeRequest } from './spawner-wire.ts'
import type { SpawnReply, SpawnRequest } from './spawner-wire.ts'
import { createStuckStarts } from './stuck-starts.ts'

export interface SpawnerProcess extends AsyncDisposable {
  start(request: SpawnRequest): Promise<StartedProcess>
}

export interface StartedProcess {
  readonly pid: number
  readonly exit: Promise<Exit>
  /** Does nothing once the process is known to have ended: the pid may be somebody else's by then. */
  kill(signal: NodeJS.Signals): void
}

export interface SpawnerProcessOptions {
  /** Its variables. Default: ours. */
  readonly env?: NodeJS.ProcessEnv
  /** A process that is not on its way after one to two of these is killed. Default: 15 s. */
  readonly lookIntervalMs?: number
}

/** By a command line that becomes the spawner. */
export function createSpawnerProcess(
  command: readonly string[],
  options: SpawnerProcessOptions = {},
): SpawnerProcess {
  let current: Running | undefined
  let isClosed = false
  return {
    async start(request) {
      return running().start(request)
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      await current?.close()
    },
  }

  function running(): Running {
    if (isClosed) throw new Error('the spawner is closed')
    current ??= runSpawner(command, options, () => (current = undefined))
    return current
  }
}

interface Running {
  start(request: SpawnRequest): Promise<StartedProcess>
  close(): Promise<void>
}

function runSpawner(
  [program = '', ...args]: readonly string[],
  { env, lookIntervalMs = 15_000 }: SpawnerProcessOptions,
  onEnd: () => void,
): Running {
  const waiting = new Map<number, PromiseWithResolvers<StartedProcess>>()
  const living = new Map<number, PromiseWithResolvers<Exit>>()
  let requests = 0
  let isClosing = false
  const child = spawn(program, args, {
    cwd: '/',
    ...(env && { env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = endOf(child).then(lose)
  const read = createReplyReader()
  const stuckStarts = createStuckStarts({
    spawnerPid: child.pid,
    lookIntervalMs,
    isStarted: (pid) => living.has(pid),
    kill: (pid) => killIfThere(pid, 'SIGKILL'),
  })
  child.stdout.on('data', (chunk: Buffer) => read(chunk).forEach(take))
  child.stdin.on('error', () => {}) // then it has ended, which is noticed anyway
  return {
    start(request) {
      const id = requests++ % 2 ** 32
      const answer = Promise.withResolvers<StartedProcess>()
      waiting.set(id, answer)
      stuckStarts.watch()
      child.stdin.write(encodeRequest(id, request))
      return answer.promise
    },
    close() {
      isClosing = true
      child.stdin.end()
      return ended
    },
  }

  function take(reply: SpawnReply): void {
    if (reply.kind === 'ended') {
      living.get(reply.pid)?.resolve(reply.exit)
      living.delete(reply.pid)
      return
    }
    const answer = waiting.get(reply.id)
    waiting.delete(reply.id)
    if (waiting.size === 0) stuckStarts.rest()
    if (reply.kind === 'started') answer?.resolve(started(reply.pid))
    else answer?.reject(new Error(getSystemErrorName(-reply.errno)))
  }

  function started(pid: number): StartedProcess {
    const exit = Promise.withResolvers<Exit>()
    living.set(pid, exit)
    return {
      pid,
      exit: exit.promise,
      kill(signal) {
        if (living.get(pid) === exit) killIfThere(pid, signal)
      },
    }
  }

  /** Nobody would ever learn how the processes of a spawner end that is gone: so they end with it, all in the same way. */
  function lose(): void {
    onEnd() // before anybody hears of it: the next request is for another one
    for (const answer of waiting.values()) answer.reject(new Error('the spawner has ended'))
    for (const [pid, exit] of living) {
      if (!isClosing) killIfThere(pid, 'SIGKILL')
      exit.resolve({ by: 'signal', signal: 9 })
    }
    waiting.clear()
    stuckStarts.rest()
    living.clear()
  }
}

/** It may have ended just now, and the news be on its way. */
function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Also when it could not even be started. */
async function endOf(child: ChildProcessByStdio<Writable, Readable, null>): Promise<void> {
  await once(child, 'close').catch(() => {})
}
