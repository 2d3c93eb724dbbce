/**
 * Agent's side of the egress process of this installation. The process starts when the first sandbox needs it and
 * outlives the agent; the next agent takes it over. When the process dies, a new one replaces it and gets all rules:
 * connections through it break, and no traffic bypasses it meanwhile.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { closedRanges } from '@atoll/kit/address-ranges'
import { waitFor } from '@atoll/kit/wait'
import { Answer, toLine } from '@atoll/egress/control'
import type { Request } from '@atoll/egress/control'
import type { DomainHeaders, NetworkRules } from '../domain/network/network-rules.ts'
import { findProcesses, identify, killProcess } from '../linux/processes/process.ts'
import { keyOfSources } from '../linux/files/source-key.ts'

/** Local ports that TCP connections and DNS queries are redirected to. */
export type EgressPorts = Pick<Answer, 'port' | 'namePort'>

export interface Egress {
  /** Sends all rules, keyed by sandbox address. Starts no process when no sandbox needs it. */
  setAll(rules: ReadonlyMap<string, NetworkRules>): Promise<void>
  /**
   * Applies rules before it returns, also to open connections. Without rules, the process drops all traffic of the
   * sandbox.
   */
  set(address: string, rules: NetworkRules | undefined): Promise<void>
  /** Disconnects; the egress process keeps running. */
  close(): void
  /** Kills the egress process. */
  stop(): Promise<void>
}

export interface EgressParts {
  readonly runDir: string
  readonly dataDir: string
  /** Subnet of all sandboxes, closed so that no sandbox reaches another. */
  readonly subnet: string
  readonly nameservers: readonly string[]
  /** Trusted CA certificates in PEM, in addition to those of the host. */
  readonly certificates: readonly string[]
  /** Awaited for each new egress process, after it got all rules. */
  onOpen(ports: EgressPorts): Promise<void>
  onError(error: unknown): void
}

export function createEgress(parts: EgressParts): Egress {
  const path = join(parts.runDir, 'egress.sock')
  const sandboxes = new Map<string, NetworkRules>()
  let line: Promise<Line> | undefined
  let live: Line | undefined
  /** Kept for the next process if possible: the kernel still redirects earlier DNS flows to this port. */
  let namePort = 0
  let isClosed = false

  async function open(): Promise<Line> {
    if (isClosed) throw new Error('the agent ends')
    line ??= connectOrStart().catch((error: unknown) => {
      line = undefined
      throw error
    })
    return await line
  }

  /** Sends a request. Retries when the process dies: its successor gets all rules on start, but may die as well. */
  async function tell(request: Request, attempts = 3): Promise<void> {
    try {
      const opened = await open()
      await opened.ask(request).catch(() => {
        lose(opened)
        return open()
      })
    } catch (error) {
      if (attempts === 1) throw error
      await tell(request, attempts - 1)
    }
  }

  function lose(gone: Line): void {
    if (live !== gone) return
    live = undefined
    line = undefined
    gone.hangUp()
    if (!isClosed) reopen()
  }

  async function connectOrStart(): Promise<Line> {
    const build = await keyOfSources(repository, sources, process.version)
    const known = await reach(path)
    // A process of another build may not understand the request.
    const answer = await known?.ask(beginning()).catch(() => undefined)
    if (known && answer?.build === build) return await taken(known, answer)
    known?.hangUp()
    await endAll(path)
    await start([path, build, String(namePort)], join(parts.dataDir, 'egress.log'))
    const started = await reach(path)
    if (!started) throw new Error('the egress process does not listen')
    const first = await started.ask(beginning()).catch((error: unknown) => {
      started.hangUp()
      throw error
    })
    return await taken(started, first)
  }

  async function taken(made: Line, answer: Answer): Promise<Line> {
    try {
      await endAll(path, answer.pid)
      await parts.onOpen(answer)
    } catch (error) {
      made.hangUp()
      throw error
    }
    namePort = answer.namePort
    live = made
    made.onClose(() => lose(made))
    return made
  }

  function reopen(): void {
    open().catch((error: unknown) => {
      parts.onError(error)
      setTimeout(() => isClosed || reopen(), retryMs).unref()
    })
  }

  function keep(address: string, rules: NetworkRules | undefined): void {
    if (rules) sandboxes.set(address, rules)
    else sandboxes.delete(address)
  }

  function beginning(): Request {
    const { nameservers, certificates, subnet } = parts
    return {
      kind: 'begin',
      closedRanges: [...closedRanges, subnet],
      nameservers: [...nameservers],
      certificates: [...certificates],
      sandboxes: Array.from(sandboxes, ([address, rules]) => ({ address, rules: toRules(rules) })),
    }
  }

  return {
    async setAll(rules) {
      sandboxes.clear()
      for (const [address, own] of rules) sandboxes.set(address, own)
      if (live) await tell(beginning())
      else if (sandboxes.size > 0 || (await isThere(path))) await open()
    },

    async set(address, rules) {
      const before = sandboxes.get(address)
      if (!rules && !before) return
      keep(address, rules)
      if (!rules && !line) return
      try {
        await tell({ kind: 'set', sandbox: { address, rules: rules && toRules(rules) } })
      } catch (error) {
        keep(address, before) // rejected rules must not reach the next process
        throw error
      }
    },

    close() {
      isClosed = true
      void line?.then((opened) => opened.hangUp()).catch(() => {})
    },

    async stop() {
      isClosed = true
      await endAll(path)
    },
  }
}

/**
 * Kills all egress processes except `but`, also unreachable ones: two agents started in quick succession may each have
 * started one. Programs in sandboxes may use the same arguments, but run in other PID namespaces.
 */
async function endAll(path: string, but?: number): Promise<void> {
  const all = await findProcesses((args) => args.includes(path))
  const others = all.filter((pid) => pid !== but && isInOurNamespace(pid))
  others.forEach(killProcess)
  const left = () => others.some((pid) => identify(pid) !== undefined)
  await waitFor('the end of the egress process', () => !left(), { timeoutMs: 30_000 })
}

function isInOurNamespace(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid')
  } catch {
    return false // the process is gone
  }
}

function toRules({ allowOut, denyOut, allowNames = [], proxy, transforms }: NetworkRules) {
  return {
    allowOut: [...allowOut],
    denyOut: [...denyOut],
    allowNames: [...allowNames],
    ...(proxy && { proxy }),
    ...(transforms?.authority && {
      transforms: { authority: transforms.authority, domains: transforms.domains.map(copy) },
    }),
  }
}

const copy = ({ pattern, headers }: DomainHeaders) => ({ pattern, headers: { ...headers } })

interface Line {
  /** Sends one request at a time. */
  ask(request: Request): Promise<Answer>
  /** Calls the listener once the connection is closed by either side, or immediately when it already is. */
  onClose(listener: () => void): void
  hangUp(): void
}

async function isThere(path: string): Promise<boolean> {
  const known = await reach(path)
  known?.hangUp()
  return known !== undefined
}

/** Returns undefined when no process listens on the socket. */
async function reach(path: string): Promise<Line | undefined> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
  } catch {
    return undefined
  }
  return openLine(socket)
}

function openLine(socket: Socket): Line {
  socket.on('error', () => {}) // 'close' follows every error
  const lines = createInterface({ input: socket })
  socket.once('close', () => lines.close()) // destroy() emits no 'end'
  const answers = lines[Symbol.asyncIterator]()
  let last: Promise<unknown> = Promise.resolve()

  async function exchange(request: Request): Promise<Answer> {
    socket.write(toLine(request))
    // Disconnect a hung process: the close triggers its replacement.
    const giveUp = setTimeout(() => socket.destroy(), answerLimitMs)
    const { value, done } = await answers.next().finally(() => clearTimeout(giveUp))
    if (done) throw new Error('the egress process ended')
    return Answer.parse(JSON.parse(value))
  }

  return {
    ask(request) {
      const answer = last.then(() => exchange(request))
      last = answer.catch(() => {})
      return answer
    },
    onClose: (listener) => void (socket.closed ? listener() : socket.once('close', listener)),
    hangUp: () => void socket.destroy(),
  }
}

async function start(args: readonly string[], logPath: string): Promise<void> {
  const program = join(repository, 'apps/egress/src/main.ts')
  const log = openSync(logPath, 'a', 0o600)
  const child = spawn(process.execPath, [program, ...args], {
    detached: true,
    cwd: '/',
    env: {}, // the server's environment has secrets
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  child.unref()
  const { stdout } = child
  const said = stdout && once(stdout, 'data')
  const failed = once(child, 'exit').then(() => {
    throw new Error(`the egress process did not start, see ${logPath}`)
  })
  const giveUp = setTimeout(() => child.kill('SIGKILL'), startLimitMs)
  await Promise.race([said, failed]).finally(() => clearTimeout(giveUp))
  failed.catch(() => {})
  stdout?.destroy()
}

const retryMs = 1000
const answerLimitMs = 10_000
const startLimitMs = 20_000

const repository = join(import.meta.dirname, '../../../..')

/** Source files of the egress process: a process of another build is replaced. */
const sources = ['apps/egress/src/**/*.ts', 'packages/kit/src/**/*.ts', 'package-lock.json']
