import type { Socket } from 'node:net'
import type { Authority } from './authority.ts'
import { decide } from './destination.ts'
import type { CompiledRules, SandboxRules, Verdict } from './destination.ts'
import { matchesName } from './name-pattern.ts'
import type { Named } from './named-stream.ts'
import { headersFor } from './transform.ts'
import type { DomainHeaders } from './transform.ts'

/** Where a sandbox meant a connection to go. */
export interface Target {
  readonly address: string
  readonly port: number
}

/** How a connection leaves the host. Two that are deeply equal lead to the same place with the same changes. */
export interface Way {
  readonly verdict: Exclude<Verdict, { kind: 'refuse' }>
  readonly proxy: SandboxRules['proxy']
  readonly transform?: Transform
}

/**
 * A change of what is sent.
 *
 * Threats: it adds a secret, and the sandbox says of any address that it is that of the name. Whatever the verdict, such
 * a connection goes to the name as we look it up. Without TLS nobody proves who answers there, and on a port that the
 * sandbox chooses it may be somebody of its own: plain HTTP is changed on its own port only. A name that was not allowed as such must not lead where the sandbox may
 * not go by itself, or this would be a way around its rules.
 */
export interface Transform extends Named {
  readonly headers: DomainHeaders['headers']
  readonly authority: Authority
  /** Each address of the name must be allowed by these, without its name. Absent: the name is allowed. */
  readonly within?: CompiledRules
}

/** Undefined: refused. */
export function findWay(
  rules: SandboxRules,
  compiled: CompiledRules,
  connection: { readonly target: Target; readonly named: Named | undefined },
): Way | undefined {
  const { target, named } = connection
  const verdict = decide(compiled, target.address, named?.name)
  if (verdict.kind === 'refuse') return undefined
  const { proxy, transforms } = rules
  const isChangeable = named?.protocol === 'tls' || target.port === httpPort
  const headers = named && transforms && isChangeable && headersFor(named.name, transforms.domains)
  if (!headers) return { verdict, proxy }
  const isAllowed = matchesName(named.name, compiled.allowNames)
  const within = !isAllowed && { within: { ...compiled, allowNames: [] } }
  return {
    verdict,
    proxy,
    transform: { ...named, headers, authority: transforms.authority, ...within },
  }
}

const httpPort = 80

export interface Dialer {
  /** Fails when nobody answers, and soon after `ended` is aborted. */
  dial(way: Way, target: Target, ended: AbortSignal): Promise<Outside>
}

export interface Outside {
  /** Not read yet; open for reading after its end of writing. */
  readonly socket: Socket
  /** What was read of it nevertheless. */
  readonly first: Buffer
}
