import type { Authority, DomainHeaders, NetworkRules } from '@atoll/contracts/network/rules'
import { isBroadPattern, isDomainPattern, normalizeName } from '@atoll/kit/domain-name'
import { Fault } from '@atoll/kit/fault'
import { formatHostPort, parseHostPort } from '@atoll/kit/host-port'

/** Returns whether the rules need the egress proxy: address rules alone cannot enforce them. */
export function needsEgressProxy({ allowNames = [], proxy, transforms }: NetworkRules): boolean {
  return allowNames.length > 0 || proxy !== undefined || transforms !== undefined
}

/**
 * Adds the certificate authority to rules with header transforms. Reuses `known`, which the sandbox already trusts, or
 * creates one. Also returns the authority that the sandbox trusts afterwards.
 */
export function withAuthority<Rules extends NetworkRules | undefined>(
  network: Rules,
  known: Authority | undefined,
  create: () => Authority,
): { readonly network: Rules; readonly authority?: Authority } {
  if (!network?.transforms) return { network, ...(known && { authority: known }) }
  const authority = known ?? create()
  return { network: { ...network, transforms: { ...network.transforms, authority } }, authority }
}

/** Validates and normalizes header rules. Throws a fault for an invalid host name or a header that cannot be sent. */
export function toDomainHeaders(entries: readonly DomainHeaders[]): DomainHeaders[] {
  return entries.map(({ pattern, headers }) => {
    if (!isBroadPattern(pattern))
      throw badRule(`${pattern} is not a host name or pattern such as example.com or *.example.com`)
    const name = normalizeName(pattern)
    const isSound = Object.entries(headers).every(
      ([key, value]) =>
        /^[\w!#$%&'*+\-.^`|~]+$/.test(key) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
    )
    if (!isSound) throw badRule(`A header for ${name} has an invalid name or value`)
    return { pattern: name, headers }
  })
}

/** Normalizes host names and patterns. Throws a fault for an invalid entry. */
export function toNames(entries: readonly string[]): string[] {
  const wrong = entries.find((entry) => !isDomainPattern(entry))
  if (wrong !== undefined)
    throw badRule(`${wrong} is not a host name or pattern such as example.com or *.example.com`)
  return entries.map(normalizeName)
}

/** Normalizes `host:port`. The fault does not quote the text, which may contain a password. */
export function toProxyAddress(text: string): string {
  const parsed = parseHostPort(text)
  if (!parsed) throw badRule('The address of the proxy must be host:port')
  return formatHostPort(parsed)
}

function badRule(message: string): Fault {
  return new Fault('invalid', 'bad_network_rule', message)
}
