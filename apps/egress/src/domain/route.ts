import type { Socket } from 'node:net'
import type { Authority, DomainHeaders, EgressRules } from '@atoll/contracts/network/rules'
import { decide } from './egress-rules.ts'
import type { CompiledRules, Verdict } from './egress-rules.ts'
import { matchesName } from './name-pattern.ts'
import type { ServerName } from './sniffing/sniff.ts'
import { headersFor } from './transform.ts'

/** Original destination of a connection, before it was redirected to the proxy. */
export interface Destination {
  readonly address: string
  readonly port: number
}

/** How a connection leaves the host. Two deeply equal routes have the same endpoint and set the same headers. */
export interface Route {
  readonly verdict: Exclude<Verdict, { kind: 'refuse' }>
  readonly proxy: EgressRules['proxy']
  readonly transform?: Transform
}

/**
 * Headers to set on the requests of a connection.
 *
 * Threats: the headers contain secrets, and a sandbox can claim any address for a name. Whatever the verdict, such a
 * connection goes to an address that the proxy resolved itself. Without TLS nothing authenticates the server, and on a
 * port of the sandbox's choice it may be the sandbox owner's own: plain HTTP is changed on port 80 only. A name that is
 * not allowed as such must not resolve to an address that the sandbox may not reach, or header rules would bypass the
 * egress rules.
 */
export interface Transform extends ServerName {
  readonly headers: DomainHeaders['headers']
  readonly authority: Authority
  /** Rules that each resolved address must satisfy without its name. Absent: the name itself is allowed. */
  readonly within?: CompiledRules
}

/** Returns undefined if the connection is refused. */
export function findRoute(
  rules: EgressRules,
  compiled: CompiledRules,
  connection: { readonly destination: Destination; readonly serverName: ServerName | undefined },
): Route | undefined {
  const { destination, serverName } = connection
  const verdict = decide(compiled, destination.address, serverName?.name)
  if (verdict.kind === 'refuse') return undefined
  const { proxy, transforms } = rules
  const isChangeable = serverName?.protocol === 'tls' || destination.port === httpPort
  const headers =
    serverName && transforms && isChangeable && headersFor(serverName.name, transforms.domains)
  if (!headers) return { verdict, proxy }
  const isAllowed = matchesName(serverName.name, compiled.allowNames)
  const within = !isAllowed && { within: { ...compiled, allowNames: [] } }
  return {
    verdict,
    proxy,
    transform: { ...serverName, headers, authority: transforms.authority, ...within },
  }
}

const httpPort = 80

export interface Dialer {
  /** Rejects if the server cannot be reached, or soon after `ended` is aborted. */
  dial(route: Route, destination: Destination, ended: AbortSignal): Promise<UpstreamConnection>
}

export interface UpstreamConnection {
  /** Not read yet. Stays readable after its write side has ended. */
  readonly socket: Socket
  /** Bytes that were already read from the socket. */
  readonly initialBytes: Buffer
}
