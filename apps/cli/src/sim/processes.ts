import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { constants } from 'node:os'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  Process,
  ProcessSelector,
  PTY,
  StartRequest,
} from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'

/** Processes of a simulated sandbox: real child processes with pipes, or a simulated terminal that echoes. */
export interface SimulatedProcesses {
  readonly service: Partial<ServiceImpl<typeof Process>>
  /** All start requests so far, with their Authorization header. */
  readonly starts: { readonly authorization: string | null; readonly request: StartRequest }[]
  /** If true, requests to close the input never get an answer. */
  ignoreCloseStdin: boolean
  /** Delays of the next resize requests, in order. Later requests are not delayed. */
  readonly resizeDelaysMs: number[]
  /** Sizes of all handled resize requests, in order. */
  readonly sizes: string[]
  /** Returns the number of running processes. */
  count(): number
  killAll(): void
}

interface LiveProcess {
  input(bytes: Uint8Array): void
  closeInput(): void
  signal(number: number): void
  resize(pty: PTY | undefined): void
}

export function simulatedProcesses(): SimulatedProcesses {
  const live = new Map<number, LiveProcess>()
  const starts: SimulatedProcesses['starts'] = []
  const find = (selector: ProcessSelector | undefined) => {
    const pid = selector?.selector.case === 'pid' ? selector.selector.value : 0
    const found = live.get(pid)
    if (!found) throw new ConnectError(`process ${pid} not found`, Code.NotFound)
    return found
  }
  const simulated: SimulatedProcesses = {
    starts,
    ignoreCloseStdin: false,
    resizeDelaysMs: [],
    sizes: [],
    count: () => live.size,
    killAll: () => {
      for (const process of live.values()) process.signal(9)
    },
    service: {
      async *start(request, context) {
        starts.push({ authorization: context.requestHeader.get('authorization'), request })
        yield* request.pty ? echo(live, request.pty) : runChild(live, request, context)
      },
      async sendInput({ process, input }) {
        find(process).input(input?.input.value ?? new Uint8Array())
        return {}
      },
      async closeStdin({ process }) {
        if (simulated.ignoreCloseStdin) await new Promise(() => {})
        find(process).closeInput()
        return {}
      },
      async sendSignal({ process, signal }) {
        find(process).signal(signal)
        return {}
      },
      async update({ process, pty }) {
        const delayMs = simulated.resizeDelaysMs.shift() ?? 0
        await sleep(delayMs)
        find(process).resize(pty)
        simulated.sizes.push(`${pty?.size?.rows}x${pty?.size?.cols}`)
        return {}
      },
    },
  }
  return simulated
}

/** The missing home keeps profile files of this machine out. */
const plainEnv = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/nonexistent' }

async function* runChild(
  live: Map<number, LiveProcess>,
  request: StartRequest,
  context: HandlerContext,
) {
  const { cmd = '', args = [], envs = {}, cwd } = request.process ?? {}
  const child = spawn(cmd, args, { env: { ...plainEnv, ...envs }, cwd: cwd ?? '/' })
  const pid = child.pid ?? 0
  if (request.stdin === false) child.stdin.end()
  child.stdin.on('error', () => {}) // a program need not read its input
  context.signal.addEventListener('abort', () => child.kill('SIGKILL'))
  live.set(pid, {
    input: (bytes) => void child.stdin.write(bytes),
    closeInput: () => void child.stdin.end(),
    signal: (number) => void child.kill(number),
    resize: () => {},
  })
  yield start(pid)
  for await (const event of outputEvents(child)) yield event
  live.delete(pid)
  yield end(child.exitCode, child.signalCode)
}

async function* outputEvents(child: ChildProcessWithoutNullStreams) {
  const events = new PassThrough({ objectMode: true })
  for (const kind of ['stdout', 'stderr'] as const) {
    child[kind].on('data', (value: Buffer) => events.write(data(kind, value)))
  }
  child.once('close', () => events.end())
  yield* events
}

/**
 * Prints its size at the start and after each resize, echoes its input, and ends at `exit <code>` or a signal.
 * Keeps running without a client, as in a real sandbox.
 */
async function* echo(live: Map<number, LiveProcess>, pty: PTY) {
  const pid = 1_000_000 + live.size
  const events = new PassThrough({ objectMode: true })
  const print = (text: string) => events.write(data('pty', Buffer.from(text)))
  const sizeOf = ({ size }: PTY) => `[size ${size?.rows}x${size?.cols}]\r\n`
  const finish = (code: number | null, signal: NodeJS.Signals | null) => {
    live.delete(pid)
    events.end(end(code, signal))
  }
  live.set(pid, {
    input(bytes) {
      const text = Buffer.from(bytes).toString()
      const [, code] = /^exit (\d+)\r/.exec(text) ?? []
      if (code === undefined) print(`[got ${JSON.stringify(text)}]\r\n`)
      else finish(Number(code), null)
    },
    closeInput: () => {},
    signal: () => finish(null, 'SIGKILL'),
    resize: (changed) => void (changed && print(sizeOf(changed))),
  })
  yield start(pid)
  print(sizeOf(pty))
  yield* events
}

const start = (pid: number) => ({ event: { event: { case: 'start', value: { pid } } } }) as const

const data = (kind: 'stdout' | 'stderr' | 'pty', value: Uint8Array) =>
  ({ event: { event: { case: 'data', value: { output: { case: kind, value } } } } }) as const

function end(code: number | null, signal: NodeJS.Signals | null) {
  const value =
    signal === null
      ? { exited: true, exitCode: code ?? 0, status: `exit status ${code}` }
      : { exited: false, exitCode: -1, status: `signal: ${signalText(signal)}` }
  return { event: { event: { case: 'end', value } } } as const
}

function signalText(signal: NodeJS.Signals): string {
  const texts: Partial<Record<NodeJS.Signals, string>> = {
    SIGKILL: 'killed',
    SIGTERM: 'terminated',
  }
  return texts[signal] ?? `signal ${constants.signals[signal]}`
}
