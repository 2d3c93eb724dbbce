/** Registry of the processes that callers started. The pids limit of the sandbox bounds their number. */
import { Fault } from '@atoll/kit/fault'
import { buildEnvironment } from '../domain/process/environment.ts'
import type { Variables } from '../domain/process/environment.ts'
import type { ProcessEnd } from '../domain/process/process-end.ts'
import { checkLaunch } from '../domain/process/launch.ts'
import type { Launch } from '../domain/process/launch.ts'
import { resolvePath } from '../domain/files/path.ts'
import type { Signal, SpawnedProcess, Spawner, TerminalSize } from '../domain/process/process.ts'
import type { User } from '../domain/access/user.ts'
import { createExitedProcesses } from './exited-processes.ts'
import type { Subscription } from './fanout.ts'
import { superviseProcess } from './live-process.ts'
import type { LiveProcess, ProcessEvent, ProcessRequest } from './live-process.ts'
import type { SandboxLog } from './log.ts'
import { commandText, createProcessLog } from './process-log.ts'

export type Selector =
  | { readonly by: 'pid'; readonly pid: number }
  | { readonly by: 'tag'; readonly tag: string }

export interface StartRequest extends ProcessRequest {
  readonly user: User
  readonly workdir?: string | undefined
  readonly globals: Variables
  readonly terminal?: TerminalSize | undefined
  /** Whether to open a stdin pipe; a terminal always has input. */
  readonly stdin: boolean
  /** Running time after which the process is killed, even if clients are attached. */
  readonly timeoutMs?: number | undefined
}

/** Source of an event stream. */
export interface Attachment {
  readonly pid: number
  readonly subscription: Subscription<ProcessEvent>
}

export interface Processes {
  start(request: StartRequest): Promise<Attachment>
  /** Attaches to a process. A process that exited within the last 30 s yields its end event. */
  connect(selector: Selector): Attachment
  list(): readonly LiveProcess[]
  /** Throws a `not_found` fault unless the process runs. Callers use it to report this before other mistakes. */
  requireLive(selector: Selector): void
  writeStdin(selector: Selector, bytes: Uint8Array): Promise<void>
  writeTerminal(selector: Selector, bytes: Uint8Array): Promise<void>
  /** Returns false for a terminal, whose input cannot be closed separately. */
  closeStdin(selector: Selector): boolean
  resize(selector: Selector, size: TerminalSize): void
  signal(selector: Selector, signal: Signal): void
  /** Kills all running processes. */
  close(): void
}

export function createProcesses(deps: {
  readonly spawner: Spawner
  /** Default PATH of processes. */
  readonly path: string
  /** Monotonic clock. */
  readonly nowMs: () => number
  readonly log: SandboxLog
}): Processes {
  const live = new Set<LiveProcess>()
  const exited = createExitedProcesses(deps.nowMs)

  return {
    async start(request) {
      const launch = toLaunch(request, deps.path)
      const command = [request.cmd, ...request.args]
      const spawned = await spawn(launch, request).catch((cause: unknown) => {
        const fields = { logger: 'process', command: commandText(command) }
        deps.log.write('warn', 'Failed to start process', fields)
        throw cause
      })
      const { pid } = spawned
      exited.supersede(pid, request.tag)
      const { cmd, args, envs, cwd, tag, timeoutMs, user } = request
      const logged = { pid, tag, command, user: user.name }
      const log = createProcessLog(deps.log, logged, deps.nowMs)
      const onEnd = (end: ProcessEnd) => {
        live.delete(started)
        log.ended(end)
        exited.add({ pid, tag: request.tag, end })
      }
      const onOutput = log.output
      const { nowMs } = deps
      const options = { timeoutMs, nowMs, onOutput, onEnd }
      const started = superviseProcess(spawned, { cmd, args, envs, cwd, tag }, options)
      live.add(started)
      return { pid, subscription: started.subscribe() }
    },
    connect(selector) {
      const process = findLive(selector)
      if (process) return { pid: process.pid, subscription: process.subscribe() }
      const exitedProcess = exited.find((entry) => isSelected(selector, entry.pid, entry.tag))
      if (!exitedProcess) return throwNotFound(selector)
      return { pid: exitedProcess.pid, subscription: endedSubscription(exitedProcess.end) }
    },
    list: () => [...live],
    requireLive: (selector) => void find(selector),
    async writeStdin(selector, bytes) {
      const { spawned } = find(selector)
      if (spawned.resize) refuse('The process has a terminal. Send its input as pty, not stdin.')
      const input =
        spawned.input ??
        refuse('The process was started without stdin. Start it with stdin to send input.')
      await input.write(bytes)
    },
    async writeTerminal(selector, bytes) {
      const { spawned } = find(selector)
      if (!spawned.resize) refuse('The process has no terminal. Send its input as stdin, not pty.')
      await spawned.input?.write(bytes)
    },
    closeStdin(selector) {
      const { spawned } = find(selector)
      if (spawned.resize) return false
      spawned.input?.end()
      return true
    },
    resize(selector, size) {
      const { spawned } = find(selector)
      const resizeTo =
        spawned.resize ?? refuse('The process has no terminal to resize. Start it with a pty.')
      resizeTo(size)
    },
    signal: (selector, signal) => find(selector).signal(signal),
    close() {
      for (const process of live) process.signal('SIGKILL')
    },
  }

  async function spawn(launch: Launch, { terminal, stdin }: StartRequest): Promise<SpawnedProcess> {
    checkLaunch(launch)
    deps.spawner.checkDirectory(launch)
    return terminal
      ? deps.spawner.spawnOnTerminal(launch, terminal)
      : deps.spawner.spawnOnPipes(launch, { stdin })
  }

  function find(selector: Selector): LiveProcess {
    return findLive(selector) ?? throwNotFound(selector)
  }

  /**
   * Returns the newest match: a process that exited but whose output is still open may share its pid with a newer
   * one.
   */
  function findLive(selector: Selector): LiveProcess | undefined {
    return [...live].findLast(({ pid, request }) => isSelected(selector, pid, request.tag))
  }
}

function toLaunch(request: StartRequest, path: string): Launch {
  const { user, globals } = request
  return {
    command: request.cmd,
    args: request.args,
    env: buildEnvironment({ path, user, globals, request: request.envs }),
    cwd: resolvePath(request.cwd ?? '', { home: user.home, workdir: request.workdir }),
    user,
  }
}

function endedSubscription(end: ProcessEnd): Subscription<ProcessEvent> {
  return {
    next: () => Promise.resolve({ kind: 'end', end, timedOut: false }),
    close() {},
  }
}

function isSelected(selector: Selector, pid: number, tag: string | undefined): boolean {
  return selector.by === 'pid' ? selector.pid === pid : selector.tag === tag
}

function throwNotFound(selector: Selector): never {
  const name = selector.by === 'pid' ? `pid ${selector.pid}` : `tag '${selector.tag}'`
  throw new Fault('not_found', 'process_not_found', `No process with ${name}. It may have exited.`)
}

function refuse(message: string): never {
  throw new Fault('internal', 'wrong_kind_of_process', message)
}
