/** The sandboxes whose connections pass here, their rules, and what is open of each. */
import { isDeepStrictEqual } from 'node:util'
import { compileRules, decide, needsName } from '../domain/destination.ts'
import type { SandboxRules } from '../domain/destination.ts'
import { matchesName } from '../domain/name-pattern.ts'
import type { Named } from '../domain/named-stream.ts'
import { createTokenBucket } from '../domain/token-bucket.ts'
import { findWay } from '../domain/way.ts'
import type { Target, Way } from '../domain/way.ts'

export interface Sandboxes {
  /** Replaces all rules. */
  begin(closedRanges: readonly string[], sandboxes: readonly SandboxWithRules[]): void
  /** Replaces the rules of one, and ends what is open of it and no longer allowed. */
  set(sandbox: SandboxWithRules): void
  find(address: string): Sandbox | undefined
}

export interface SandboxWithRules {
  readonly address: string
  readonly rules?: SandboxRules | undefined
}

export interface Sandbox {
  /** False when it has too many open. To be called at the begin of a connection; `end` may be called at any time. */
  admit(connection: Connection): boolean
  remove(connection: Connection): void
  /** Whether it is refused without a name. */
  needsName(target: Target): boolean
  /** Whether it may go there without a name, and a name may change what is sent. */
  wantsName(target: Target): boolean
  /** Undefined: refused. From now on it is ended when other rules would lead it elsewhere. */
  lead(connection: Connection, target: Target, named: Named | undefined): Way | undefined
  /** False when it begins them too fast: to be asked once for each connection that is looked into. */
  admitTermination(): boolean
  allowsName(name: string): boolean
}

export interface Connection {
  end(): void
}

interface Led {
  readonly target: Target
  readonly named: Named | undefined
  readonly way: Way
}

/** `now` in milliseconds, and never back. */
export function createSandboxes(now = () => performance.now()): Sandboxes {
  const known = new Map<string, ReturnType<typeof createSandbox>>()
  let closed: readonly string[] = []

  function set({ address, rules }: SandboxWithRules): void {
    const before = known.get(address)
    if (!rules) {
      known.delete(address)
      before?.endAll()
    } else if (before) before.replace(rules, closed)
    else known.set(address, createSandbox(rules, closed, now))
  }

  return {
    begin(closedRanges, sandboxes) {
      closed = closedRanges
      const named = new Set(sandboxes.map(({ address }) => address))
      for (const address of known.keys()) if (!named.has(address)) set({ address })
      sandboxes.forEach(set)
    },
    set,
    find: (address) => known.get(address),
  }
}

function createSandbox(first: SandboxRules, closed: readonly string[], now: () => number) {
  /** What was decided of each, once it is. */
  const open = new Map<Connection, Led | undefined>()
  let rules = first
  let compiled = compileRules(first, closed)
  const terminations = createTokenBucket({ perSecond: 50, burst: 100 }, now)

  const sandbox: Sandbox = {
    admit(connection) {
      if (open.size >= mostConnections) return false
      open.set(connection, undefined)
      return true
    },
    remove: (connection) => void open.delete(connection),
    needsName: ({ address }) => needsName(compiled, address),
    wantsName({ address }) {
      const hasTransforms = (rules.transforms?.domains.length ?? 0) > 0
      return hasTransforms && decide(compiled, address, undefined).kind !== 'refuse'
    },
    lead(connection, target, named) {
      const way = findWay(rules, compiled, { target, named })
      if (way && open.has(connection)) open.set(connection, { target, named, way })
      return way
    },
    admitTermination: () => terminations.take(),
    allowsName: (name) => matchesName(name, rules.allowNames),
  }
  return {
    ...sandbox,
    replace(next: SandboxRules, closedRanges: readonly string[]): void {
      rules = next
      compiled = compileRules(next, closedRanges)
      for (const [connection, led] of open) {
        if (!led) continue
        const way = findWay(rules, compiled, led)
        if (!isDeepStrictEqual(way, led.way)) connection.end()
      }
    },
    endAll(): void {
      for (const connection of open.keys()) connection.end()
    },
  }
}

/** Of one sandbox: each takes memory and descriptors of the host. */
const mostConnections = 1024
