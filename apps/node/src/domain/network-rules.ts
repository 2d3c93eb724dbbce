import { isDomainPattern, plainName } from '@atoll/kit/domain-name'
import { Fault } from '@atoll/kit/fault'
import { formatHostPort, parseHostPort } from '@atoll/kit/host-port'

/**
 * What may leave a sandbox, beyond what is closed to all of them: what is allowed, then not what is denied, then all
 * else. IPv4 addresses and ranges.
 */
export interface NetworkRules {
  readonly allowOut: readonly string[]
  readonly denyOut: readonly string[]
  /** Allowed as well: `example.com` itself, or `*.example.com` for all that is below it; as `plainName` writes them. */
  readonly allowNames?: readonly string[]
  /** Absent: connections go straight to where they lead. */
  readonly proxy?: EgressProxy
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
export function isForEgress({ allowNames = [], proxy }: NetworkRules): boolean {
  return allowNames.length > 0 || proxy !== undefined
}

/** A fault when one is neither a name nor a pattern. */
export function toNames(entries: readonly string[]): string[] {
  const wrong = entries.find((entry) => !isDomainPattern(entry))
  if (wrong !== undefined) throw badRule(`${wrong} is no name of a host`)
  return entries.map(plainName)
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
