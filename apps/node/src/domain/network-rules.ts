import { isBroadPattern, isDomainPattern, normalizeName } from '@atoll/kit/domain-name'
import { Fault } from '@atoll/kit/fault'
import { formatHostPort, parseHostPort } from '@atoll/kit/host-port'

/**
 * What may leave a sandbox, beyond what is closed to all of them: what is allowed, then not what is denied, then all
 * else. IPv4 addresses and ranges.
 */
export interface NetworkRules {
  readonly allowOut: readonly string[]
  readonly denyOut: readonly string[]
  /** Allowed as well: `example.com` itself, or `*.example.com` for all that is below it; as `normalizeName` writes them. */
  readonly allowNames?: readonly string[]
  /** Absent: connections go straight to where they lead. */
  readonly proxy?: EgressProxy
  readonly transforms?: Transforms
}

/** What is set on requests on their way out. */
export interface Transforms {
  readonly domains: readonly DomainHeaders[]
  /** Certifies the egress process to this sandbox, which trusts it for that. Absent until they are put in force. */
  readonly authority?: Authority
}

/** Of requests to a name, or to all below it, as in `allowNames`. Values are secrets. */
export interface DomainHeaders {
  readonly pattern: string
  readonly headers: Readonly<Record<string, string>>
}

/** In PEM. */
export interface Authority {
  readonly certificate: string
  /** Not to be said to anybody but the egress process. */
  readonly key: string
}

/** A SOCKS5 proxy outside. */
export interface EgressProxy {
  /** `host:port`, the host being a name or an IPv4 address. */
  readonly address: string
  readonly username?: string
  /** Not to be logged, nor to be said to anybody but the proxy. */
  readonly password?: string
}

/** Whether they need somebody who looks into what is sent, or sends it another way. */
export function isForEgress({ allowNames = [], proxy, transforms }: NetworkRules): boolean {
  return allowNames.length > 0 || proxy !== undefined || transforms !== undefined
}

/** Rules as they are put in force in a sandbox that trusts `known` already, and whom it trusts then. */
export function certified<Rules extends NetworkRules | undefined>(
  network: Rules,
  known: Authority | undefined,
  create: () => Authority,
): { readonly network: Rules; readonly authority?: Authority } {
  if (!network?.transforms) return { network, ...(known && { authority: known }) }
  const authority = known ?? create()
  return { network: { ...network, transforms: { ...network.transforms, authority } }, authority }
}

/** A fault when one is for no name, or none that can be sent. */
export function toDomainHeaders(entries: readonly DomainHeaders[]): DomainHeaders[] {
  return entries.map(({ pattern, headers }) => {
    if (!isBroadPattern(pattern)) throw badRule(`${pattern} is no name of a host`)
    const name = normalizeName(pattern)
    const isSound = Object.entries(headers).every(
      ([key, value]) =>
        /^[\w!#$%&'*+\-.^`|~]+$/.test(key) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
    )
    if (!isSound) throw badRule(`A header for ${name} cannot be sent`)
    return { pattern: name, headers }
  })
}

/** A fault when one is neither a name nor a pattern. */
export function toNames(entries: readonly string[]): string[] {
  const wrong = entries.find((entry) => !isDomainPattern(entry))
  if (wrong !== undefined) throw badRule(`${wrong} is no name of a host`)
  return entries.map(normalizeName)
}

/** A fault when it is no `host:port`; without the text, in which somebody may have put a password. */
export function toProxyAddress(text: string): string {
  const parsed = parseHostPort(text)
  if (!parsed) throw badRule('The address of the proxy is no host with a port')
  return formatHostPort(parsed)
}

function badRule(message: string): Fault {
  return new Fault('invalid', 'bad_network_rule', message)
}
