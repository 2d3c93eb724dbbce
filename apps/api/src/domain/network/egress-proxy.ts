import type { NetworkSettings } from '@atoll/contracts/network/config'
import type { EgressProxy } from '@atoll/contracts/network/rules'
import { closedRanges, contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import { formatHostPort, parseHostPort } from '@atoll/kit/host-port'
import { invalid } from './network-fault.ts'

/** External SOCKS5 proxy as the creator of the sandbox sent it. */
export type RequestedProxy = NonNullable<NetworkSettings['egressProxy']>

/** Error messages never repeat the input, because addresses may contain passwords. */
export function checkProxy({ address, username, password }: RequestedProxy, field: string): void {
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
export function plainProxy({ address, username, password }: RequestedProxy): EgressProxy {
  const parsed = parseHostPort(address)
  return {
    address: parsed ? formatHostPort(parsed) : address,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  }
}

/**
 * Proxies in internal ranges would give a sandbox access to the networks of the host. Domain names are resolved and
 * checked when the proxy is dialed.
 */
function isClosed(host: string): boolean {
  const address = toNumber(host)
  return address !== undefined && contains(toRanges(closedRanges), address)
}
