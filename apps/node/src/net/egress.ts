/**
 * The egress process of this installation, from the agent's side. It is started when the first sandbox needs it and goes
 * on without us; whoever comes next takes it over. When it ends, another takes its place at once and is told all rules:
 * connections through it break, and nothing leaves past it meanwhile.
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
import type { DomainHeaders, NetworkRules } from '../domain/network-rules.ts'
import { findProcesses, identify, killProcess } from '../linux/process.ts'
import { keyOfSources } from '../linux/source-key.ts'

/** Where on this host connections and questions for names are led to. */
export type EgressPorts = Pick<Answer, 'port' | 'namePort'>

export interface Egress {
  /** Tells all rules, by the addresses of sandboxes. Starts none when none needs it. */
  begin(rules: ReadonlyMap<string, NetworkRules>): Promise<void>
  /** In force when it returns, for open connections too. Without rules, nothing of that sandbox leaves this way. */
  set(address: string, rules: NetworkRules | undefined): Promise<void>
  /** Lets go of it; it goes on. */
  close(): void
  /** Ends it. */
  end(): Promise<void>
}

export interface EgressParts {
  readonly runDir: string
  readonly dataDir: string
  /** Of all sandboxes: none reaches another. */
  readonly subnet: string
  readonly nameservers: readonly string[]
  /** In PEM: authorities that servers outside are trusted by, beside those that the machine knows. */
  readonly certificates: readonly string[]
  /** Awaited whenever there is another one than before. It knows all rules by then. */
  onOpen(ports: EgressPorts): Promise<void>
  onError(error: unknown): void
}

export function createEgress(parts: EgressParts): Egress {
  const path = join(parts.runDir, 'egress.sock')
  const sandboxes = new Map<string, NetworkRules>()
  let line: Promise<Line> | undefined
  let live: Line | undefined
  /** The next one has the same if it can: the kernel still leads there what was asked for before. */
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

  /** One that ends meanwhile is replaced by one that knows, and may end as well. */
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
    // One of another build may not even understand.
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
    async begin(rules) {
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
        keep(address, before) // and not what its next successor would be told
        throw error
      }
    },

    close() {
      isClosed = true
      void line?.then((opened) => opened.hangUp()).catch(() => {})
    },

    async end() {
      isClosed = true
      await endAll(path)
    },
  }
}

/**
 * Also those that nobody can reach any more: two agents that came soon after each other may each have started one.
 * Programs in sandboxes can be called anything, but they are in namespaces of their own.
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
    return false // it is gone
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
  /** One at a time. */
  ask(request: Request): Promise<Answer>
  /** Called when the process is gone, or we hung up, or both are so already. */
  onClose(listener: () => void): void
  hangUp(): void
}

async function isThere(path: string): Promise<boolean> {
  const known = await reach(path)
  known?.hangUp()
  return known !== undefined
}

/** Undefined when nobody listens there. */
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
  socket.on('error', () => {}) // its close says the same
  const lines = createInterface({ input: socket })
  socket.once('close', () => lines.close()) // who hangs up hears no end
  const answers = lines[Symbol.asyncIterator]()
  let last: Promise<unknown> = Promise.resolve()

  async function exchange(request: Request): Promise<Answer> {
    socket.write(toLine(request))
    // One that does not answer is as good as none: its end brings the next.
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
    env: {}, // ours has secrets
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

/** What the process is made of: one of another make is replaced. */
const sources = ['apps/egress/src/**/*.ts', 'packages/kit/src/**/*.ts', 'package-lock.json']
