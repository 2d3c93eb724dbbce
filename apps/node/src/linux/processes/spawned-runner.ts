/**
 * Runs programs through the spawner of the guest program. Forking this process would block it for 10 ms or more,
 * because the kernel copies its page tables; a request to the spawner is a write of a few hundred bytes.
 *
 * Input and output are unnamed files in memory, which the spawner opens through this process's descriptors. So a
 * program that leaves children behind blocks nothing, and nothing remains when this process is killed.
 */
import { closeSync, constants, fstatSync, openSync, readSync, writeFileSync } from 'node:fs'
import { constants as system } from 'node:os'
import { commandEnvironment } from '@atoll/kit/command-environment'
import type { ExitStatus } from '@atoll/kit/exit-status'
import { defaultTimeoutMs, outputLimitBytes, outputOf } from '@atoll/kit/run'
import type { RunOptions, Runner, RunResult } from '@atoll/kit/run'
import { createSpawnerProcess } from '@atoll/kit/spawner/process'
import type { StartedProcess } from '@atoll/kit/spawner/process'

export interface SpawnedRunner extends Runner, AsyncDisposable {}

export function createSpawnedRunner(parts: {
  /** Command line of a tied spawner: programs end with the spawner, and the spawner ends with this process. */
  readonly spawner: readonly string[]
  /** Folder on a tmpfs. */
  readonly dir: string
}): SpawnedRunner {
  const spawner = createSpawnerProcess(parts.spawner, { env: commandEnvironment() })

  async function tryRun(
    command: string,
    args: readonly string[],
    options: RunOptions = {},
  ): Promise<RunResult> {
    const { input, stdio, env, cwd = '/', signal } = options
    signal?.throwIfAborted()
    using opened = new DisposableStack()
    const open = (content = '') => opened.use(openNameless(parts.dir, content))
    const outputs = stdio === undefined ? { stdout: open(), stderr: open() } : undefined
    const stdin = stdio === undefined && input !== undefined ? open(input) : undefined
    const started = await spawner.start({
      stdio: [stdin?.name, outputs?.stdout.name, outputs?.stderr.name],
      args: ['exec', '--uid', '0', '--gid', '0', '--cwd', cwd, '--', command, ...args],
      env: env ? definedOf(commandEnvironment(env)) : {}, // empty: the environment of the spawner
    })
    const exit = await endOf(started, options)
    signal?.throwIfAborted()
    const [stdout = '', stderr = ''] = [outputs?.stdout.read(), outputs?.stderr.read()]
    return { ...resultOf(exit), stdout, stderr }
  }

  return {
    tryRun,
    run: async (command, args, options) =>
      outputOf(command, args, await tryRun(command, args, options)),
    [Symbol.asyncDispose]: () => spawner[Symbol.asyncDispose](),
  }
}

async function endOf(
  started: StartedProcess,
  { timeoutMs = defaultTimeoutMs, signal }: RunOptions,
): Promise<ExitStatus> {
  const stop = () => started.kill('SIGKILL')
  const timer = setTimeout(stop, timeoutMs)
  signal?.addEventListener('abort', stop)
  if (signal?.aborted) stop()
  try {
    return await started.exit
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

interface NamelessFile extends Disposable {
  /** Path that any process with the same privileges can open. */
  readonly name: string
  /** Returns the content, truncated to `outputLimitBytes`. */
  read(): string
}

/** Opens an unnamed file synchronously: in memory each call takes microseconds, less than the thread pool. */
function openNameless(dir: string, content: string): NamelessFile {
  const fd = openSync(dir, constants.O_RDWR | nameless, 0o600)
  if (content) writeFileSync(fd, content)
  return {
    name: `/proc/${process.pid}/fd/${fd}`,
    read() {
      const bytes = Buffer.alloc(Math.min(fstatSync(fd).size, outputLimitBytes))
      return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0))
    },
    [Symbol.dispose]: () => closeSync(fd),
  }
}

/** Value of O_TMPFILE. Node.js exports only O_DIRECTORY, the part that differs between architectures. */
const nameless = 0o20000000 | constants.O_DIRECTORY

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function resultOf(exit: ExitStatus): Pick<RunResult, 'code' | 'signal'> {
  return exit.by === 'exit'
    ? { code: exit.code, signal: null }
    : { code: null, signal: signalName(exit.signal) }
}

/** Returns null for a signal without a name, such as most real-time signals. */
function signalName(number: number): NodeJS.Signals | null {
  let name: NodeJS.Signals
  for (name in system.signals) if (system.signals[name] === number) return name
  return null
}
