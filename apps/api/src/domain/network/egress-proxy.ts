import { closedRanges, contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import { formatHostPort, parseHostPort } from '@atoll/kit/host-port'
import { invalid } from './network-fault.ts'

/** External SOCKS5 proxy for the outgoing TCP connections of a sandbox. */
export interface EgressProxy {
  /** `host:port`. */
  readonly address: string
  readonly username?: string | undefined
  /** Secret: only the node may receive the password. Never log it. */
  readonly password?: string | undefined
}

/** Error messages never repeat the input, because addresses may contain passwords. */
export function checkProxy({ address, username, password }: EgressProxy, field: string): void {
  const parsed = parseHostPort(address)
  if (!parsed) {
    throw invalid(
      `${field}.address`,
      'must be host:port with an IPv4 address or a domain, such as "proxy.example.com:1080"',
    )
  }
  if (isClosed(parsed.host)) {
    throw invalid(`${field}.address`, 'must not be in an internal range')
  }
  if (username === '') throw invalid(`${field}.username`, 'must not be empty')
  if (password !== undefined && username === undefined) {
    throw invalid(`${field}.password`, 'needs a username')
  }
}

/** Normalizes the address. */
export function plainProxy(proxy: EgressProxy): EgressProxy {
  const parsed = parseHostPort(proxy.address)
  return parsed ? { ...proxy, address: formatHostPort(parsed) } : proxy
}

/**
 * Proxies in internal ranges would give a sandbox access to the networks of the host. Domain names are resolved and
 * checked when the proxy is dialed.
 */
function isClosed(host: string): boolean {
  const address = toNumber(host)
  return address !== undefined && contains(toRanges(closedRanges), address)
}
