/** Registry of the sandboxes that use the egress proxy, their rules and their open connections. */
import { isDeepStrictEqual } from 'node:util'
import type { EgressRules } from '@atoll/contracts/network/rules'
import { createDecisions } from '../domain/decisions.ts'
import type { Decisions, RecordedDecision } from '../domain/decisions.ts'
import { compileRules, decide, needsName } from '../domain/egress-rules.ts'
import { matchesName } from '../domain/name-pattern.ts'
import type { ServerName } from '../domain/sniffing/sniff.ts'
import { createTokenBucket } from '../domain/token-bucket.ts'
import { findRoute } from '../domain/route.ts'
import type { Destination, Route } from '../domain/route.ts'

export interface Sandboxes {
  /** Replaces the rules of all sandboxes. Removes the sandboxes that are not listed. */
  replaceAll(closedRanges: readonly string[], sandboxes: readonly SandboxWithRules[]): void
  /** Replaces the rules of one sandbox and closes its connections that the new rules no longer allow. */
  set(sandbox: SandboxWithRules): void
  find(address: string): Sandbox | undefined
  /** Returns what was decided about connections of a sandbox since it has rules for this proxy. */
  decisions(address: string): RecordedDecision[]
  /** Returns the sandboxes that were denied a connection or a name since that time. */
  deniedSince(ms: number): { readonly address: string; readonly lastMs: number }[]
}

export interface SandboxWithRules {
  readonly address: string
  readonly rules?: EgressRules | undefined
}

export interface Sandbox {
  /**
   * Registers a new connection. Returns false if the sandbox has too many open. `close` may be called at any time
   * after.
   */
  admit(connection: Connection): boolean
  remove(connection: Connection): void
  /** Whether a connection to this destination is refused unless it carries a server name. */
  needsName(destination: Destination): boolean
  /** Whether a connection is allowed without a server name, but a name could still match a header rule. */
  canUseName(destination: Destination): boolean
  /** Returns undefined if the connection is refused. Later rule changes close it if its route changes. */
  route(
    connection: Connection,
    destination: Destination,
    serverName: ServerName | undefined,
  ): Route | undefined
  /** Takes one token of the rate limit for terminated connections. Returns false if the sandbox exceeds the limit. */
  admitTermination(): boolean
  allowsDnsName(name: string): boolean
  readonly record: Decisions['record']
}

export interface Connection {
  close(): void
}

interface RoutedConnection {
  readonly destination: Destination
  readonly serverName: ServerName | undefined
  readonly route: Route
}

/** `now` is a monotonic clock in milliseconds. */
export function createSandboxes(now = () => performance.now()): Sandboxes {
  const known = new Map<string, ReturnType<typeof createSandbox>>()
  let closedRanges: readonly string[] = []

  function set({ address, rules }: SandboxWithRules): void {
    const existing = known.get(address)
    if (!rules) {
      known.delete(address)
      existing?.closeAll()
    } else if (existing) existing.replace(rules, closedRanges)
    else known.set(address, createSandbox(rules, closedRanges, now))
  }

  return {
    replaceAll(newClosedRanges, sandboxes) {
      closedRanges = newClosedRanges
      const listed = new Set(sandboxes.map(({ address }) => address))
      for (const address of known.keys()) if (!listed.has(address)) set({ address })
      sandboxes.forEach(set)
    },
    set,
    find: (address) => known.get(address),
    decisions: (address) => known.get(address)?.decisions() ?? [],
    deniedSince: (ms) =>
      [...known]
        .map(([address, sandbox]) => ({ address, lastMs: sandbox.lastDeniedMs() }))
        .filter(({ lastMs }) => lastMs > 0 && lastMs >= ms),
  }
}

function createSandbox(
  initialRules: EgressRules,
  closedRanges: readonly string[],
  now: () => number,
) {
  /** Open connections with their routes; undefined until the route is decided. */
  const open = new Map<Connection, RoutedConnection | undefined>()
  let rules = initialRules
  let compiled = compileRules(initialRules, closedRanges)
  const decisions = createDecisions(Date.now)
  const terminations = createTokenBucket({ perSecond: 50, burst: 100 }, now)

  const sandbox: Sandbox = {
    admit(connection) {
      if (open.size >= maxConnections) return false
      open.set(connection, undefined)
      return true
    },
    remove: (connection) => void open.delete(connection),
    needsName: ({ address }) => needsName(compiled, address),
    canUseName({ address }) {
      const hasTransforms = (rules.transforms?.domains.length ?? 0) > 0
      return hasTransforms && decide(compiled, address, undefined).kind !== 'refuse'
    },
    route(connection, destination, serverName) {
      const route = findRoute(rules, compiled, { destination, serverName })
      if (route && open.has(connection)) open.set(connection, { destination, serverName, route })
      return route
    },
    admitTermination: () => terminations.take(),
    allowsDnsName: (name) => matchesName(name, rules.allowNames),
    record: decisions.record,
  }
  return {
    ...sandbox,
    decisions: decisions.list,
    lastDeniedMs: decisions.lastDeniedMs,
    replace(newRules: EgressRules, newClosedRanges: readonly string[]): void {
      rules = newRules
      compiled = compileRules(newRules, newClosedRanges)
      for (const [connection, routed] of open) {
        if (!routed) continue
        const route = findRoute(rules, compiled, routed)
        if (!isDeepStrictEqual(route, routed.route)) connection.close()
      }
    },
    closeAll(): void {
      for (const connection of open.keys()) connection.close()
    },
  }
}

/** Limit per sandbox. Each connection takes memory and file descriptors of the host. */
const maxConnections = 1024
