/**
 * Spawner: a small process that starts programs for a large one. Forking a large Node.js process blocks it while its
 * memory maps are copied, above all under gVisor. Started on first use, and again if it exits.
 */
import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { kill } from 'node:process'
import type { Readable, Writable } from 'node:stream'
import { getSystemErrorName } from 'node:util'
import type { ExitStatus } from '../exit-status.ts'
import { createReplyReader, encodeRequest } from './wire.ts'
import type { SpawnReply, SpawnRequest } from './wire.ts'
import { createSpawnWatchdog } from './watchdog.ts'

export interface SpawnerProcess extends AsyncDisposable {
  start(request: SpawnRequest): Promise<StartedProcess>
}

export interface StartedProcess {
  readonly pid: number
  readonly exit: Promise<ExitStatus>
  /** Does nothing once the process has ended, since its PID may belong to another process by then. */
  kill(signal: NodeJS.Signals): void
}

export interface SpawnerProcessOptions {
  /** Environment variables. Default: those of this process. */
  readonly env?: NodeJS.ProcessEnv
  /** A program that has not started after one to two intervals is killed. Default: 15 s. */
  readonly lookIntervalMs?: number
}

/** `command` is the command line that starts the spawner. */
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
    if (isClosed) throw new Error('Cannot start a process: the spawner is closed')
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
  const pendingRequests = new Map<number, PromiseWithResolvers<StartedProcess>>()
  const runningProcesses = new Map<number, PromiseWithResolvers<ExitStatus>>()
  let requests = 0
  let isClosing = false
  const child = spawn(program, args, {
    cwd: '/',
    ...(env && { env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = waitForClose(child).then(onSpawnerExit)
  const read = createReplyReader()
  const watchdog = createSpawnWatchdog({
    spawnerPid: child.pid,
    lookIntervalMs,
    isStarted: (pid) => runningProcesses.has(pid),
    kill: (pid) => killIfExists(pid, 'SIGKILL'),
  })
  child.stdout.on('data', (chunk: Buffer) => read(chunk).forEach(handleReply))
  child.stdin.on('error', () => {}) // the spawner has exited, which is noticed elsewhere
  return {
    start(request) {
      const id = requests++ % 2 ** 32
      const answer = Promise.withResolvers<StartedProcess>()
      pendingRequests.set(id, answer)
      watchdog.start()
      child.stdin.write(encodeRequest(id, request))
      return answer.promise
    },
    close() {
      isClosing = true
      child.stdin.end()
      return ended
    },
  }

  function handleReply(reply: SpawnReply): void {
    if (reply.kind === 'ended') {
      runningProcesses.get(reply.pid)?.resolve(reply.exit)
      runningProcesses.delete(reply.pid)
      return
    }
    const answer = pendingRequests.get(reply.id)
    pendingRequests.delete(reply.id)
    if (pendingRequests.size === 0) watchdog.stop()
    if (reply.kind === 'started') answer?.resolve(started(reply.pid))
    else answer?.reject(new Error(getSystemErrorName(-reply.errno)))
  }

  function started(pid: number): StartedProcess {
    const exit = Promise.withResolvers<ExitStatus>()
    runningProcesses.set(pid, exit)
    return {
      pid,
      exit: exit.promise,
      kill(signal) {
        if (runningProcesses.get(pid) === exit) killIfExists(pid, signal)
      },
    }
  }

  /** The exit statuses of its children are lost with a spawner, so they are killed and all reported as killed. */
  function onSpawnerExit(): void {
    onEnd() // first, so that the next request starts another spawner
    for (const answer of pendingRequests.values())
      answer.reject(new Error('Cannot start the process: the spawner exited'))
    for (const [pid, exit] of runningProcesses) {
      if (!isClosing) killIfExists(pid, 'SIGKILL')
      exit.resolve({ by: 'signal', signal: 9 })
    }
    pendingRequests.clear()
    watchdog.stop()
    runningProcesses.clear()
  }
}

/** The process may just have ended before its exit was reported. */
function killIfExists(pid: number, signal: NodeJS.Signals): void {
  try {
    kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Also resolves if the program could not be started. */
async function waitForClose(child: ChildProcessByStdio<Writable, Readable, null>): Promise<void> {
  await once(child, 'close').catch(() => {})
}
