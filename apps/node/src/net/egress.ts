/**
 * Agent's side of the egress process of this installation. The process starts when the first sandbox needs it and
 * outlives the agent; the next agent takes it over. When the process dies, a new one replaces it and gets all rules:
 * connections through it break, and no traffic bypasses it meanwhile.
 */
import { join } from 'node:path'
import { closedRanges } from '@atoll/kit/address-ranges'
import type { Answer, Request } from '@atoll/egress/control'
import type { EgressRules, NetworkRules } from '@atoll/contracts/network/rules'
import { isListening } from './egress-connection.ts'
import type { EgressConnection } from './egress-connection.ts'
import { killEgressProcesses, openEgressProcess } from './egress-process.ts'

/** Local ports that TCP connections and DNS queries are redirected to. */
export type EgressPorts = Pick<Answer, 'port' | 'namePort'>

export type EgressDecision = NonNullable<Answer['decisions']>[number]

export interface Egress {
  /** Sends all rules, keyed by sandbox address. Starts no process when no sandbox needs it. */
  setAll(rules: ReadonlyMap<string, NetworkRules>): Promise<void>
  /**
   * Applies rules before it returns, also to open connections. Without rules, the process drops all traffic of the
   * sandbox.
   */
  set(address: string, rules: NetworkRules | undefined): Promise<void>
  /** Returns the numbers of decisions of the egress process since its start; undefined while there is none. */
  decisionCounts(): Promise<Answer['counts'] | undefined>
  /** Returns what the process decided about the connections of a sandbox; nothing while there is no process. */
  decisions(address: string): Promise<readonly EgressDecision[]>
  /** Returns the addresses of sandboxes that the process denied something since a time, with the last time. */
  deniedSince(ms: number): Promise<ReadonlyMap<string, number>>
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

const retryMs = 1000

export function createEgress(parts: EgressParts): Egress {
  const path = join(parts.runDir, 'egress.sock')
  const sandboxes = new Map<string, NetworkRules>()
  const link = createEgressLink(parts, path, () => allRules(parts, sandboxes))

  function remember(address: string, rules: NetworkRules | undefined): void {
    if (rules) sandboxes.set(address, rules)
    else sandboxes.delete(address)
  }

  return {
    async setAll(rules) {
      sandboxes.clear()
      for (const [address, own] of rules) sandboxes.set(address, own)
      if (link.isConnected()) await link.send(allRules(parts, sandboxes))
      else if (sandboxes.size > 0 || (await isListening(path))) await link.open()
    },

    async set(address, rules) {
      const before = sandboxes.get(address)
      if (!rules && !before) return
      remember(address, rules)
      if (!rules && !link.isOpen()) return
      try {
        await link.send({ kind: 'set', sandbox: { address, rules: rules && toRules(rules) } })
      } catch (error) {
        remember(address, before) // rejected rules must not reach the next process
        throw error
      }
    },

    async decisionCounts() {
      if (!link.isConnected()) return undefined
      const connection = await link.open()
      return (await connection.ask({ kind: 'count' })).counts
    },

    async decisions(address) {
      if (!sandboxes.has(address)) return []
      return (await link.ask({ kind: 'decisions', address }))?.decisions ?? []
    },

    async deniedSince(ms) {
      if (sandboxes.size === 0) return new Map()
      const denied = (await link.ask({ kind: 'denied', sinceMs: ms }))?.denied ?? []
      return new Map(denied.map(({ address, lastMs }) => [address, lastMs]))
    },

    close: link.close,

    async stop() {
      link.close()
      await killEgressProcesses(path)
    },
  }
}

/** Keeps a connection to the egress process and replaces a process that died. */
interface EgressLink {
  open(): Promise<EgressConnection>
  /** Sends a request. Retries when the process dies: its successor gets all rules on start, but may die as well. */
  send(request: Request): Promise<void>
  /** Asks the process that is connected, without starting one. Returns undefined if there is none. */
  ask(request: Request): Promise<Answer | undefined>
  /** Whether the process has got all rules and the connection is up. */
  isConnected(): boolean
  /** Whether the process is connected or being started. */
  isOpen(): boolean
  close(): void
}

function createEgressLink(
  parts: EgressParts,
  path: string,
  firstRequest: () => Request,
): EgressLink {
  let opening: Promise<EgressConnection> | undefined
  let connected: EgressConnection | undefined
  /** Kept for the next process if possible: the kernel still redirects earlier DNS flows to this port. */
  let namePort = 0
  let isClosed = false

  async function open(): Promise<EgressConnection> {
    if (isClosed) throw new Error('the agent shuts down')
    opening ??= connect().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return await opening
  }

  async function connect(): Promise<EgressConnection> {
    const logPath = join(parts.dataDir, 'egress.log')
    const { connection, answer } = await openEgressProcess({
      path,
      logPath,
      namePort,
      firstRequest,
    })
    try {
      await parts.onOpen(answer)
    } catch (error) {
      connection.close()
      throw error
    }
    ;({ namePort } = answer)
    connected = connection
    connection.onClose(() => disconnect(connection))
    return connection
  }

  function disconnect(gone: EgressConnection): void {
    if (connected !== gone) return
    connected = undefined
    opening = undefined
    gone.close()
    if (!isClosed) reopen()
  }

  function reopen(): void {
    open().catch((error: unknown) => {
      parts.onError(error)
      setTimeout(() => isClosed || reopen(), retryMs).unref()
    })
  }

  async function send(request: Request, attempts = 3): Promise<void> {
    try {
      const connection = await open()
      await connection.ask(request).catch(() => {
        disconnect(connection)
        return open()
      })
    } catch (error) {
      if (attempts === 1) throw error
      await send(request, attempts - 1)
    }
  }

  return {
    open,
    send: (request) => send(request),
    ask: async (request) => connected?.ask(request).catch(() => undefined),
    isConnected: () => connected !== undefined,
    isOpen: () => opening !== undefined,
    close() {
      isClosed = true
      void opening?.then((connection) => connection.close()).catch(() => {})
    },
  }
}

/** Returns the first request to a process: its settings and the rules of all sandboxes. */
function allRules(
  { nameservers, certificates, subnet }: EgressParts,
  sandboxes: ReadonlyMap<string, NetworkRules>,
): Request {
  return {
    kind: 'begin',
    closedRanges: [...closedRanges, subnet],
    nameservers: [...nameservers],
    certificates: [...certificates],
    sandboxes: Array.from(sandboxes, ([address, rules]) => ({ address, rules: toRules(rules) })),
  }
}

function toRules({ transforms, allowNames = [], ...rules }: NetworkRules): EgressRules {
  const { authority, domains = [] } = transforms ?? {}
  return { ...rules, allowNames, ...(authority && { transforms: { authority, domains } }) }
}
