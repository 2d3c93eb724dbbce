import { closedRanges, contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import { formatHostPort, parseHostPort } from '@atoll/kit/host-port'
import { invalid } from './network-fault.ts'

/** A SOCKS5 proxy outside, through which the TCP of a sandbox leaves. */
export interface EgressProxy {
  /** `host:port`. */
  readonly address: string
  readonly username?: string | undefined
  /** Never shown to anybody but the node, never logged. */
  readonly password?: string | undefined
}

/** Nothing that was sent is repeated: people write passwords into addresses, too. */
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

/** With the one way to write its address. */
export function plainProxy(proxy: EgressProxy): EgressProxy {
  const parsed = parseHostPort(proxy.address)
  return parsed ? { ...proxy, address: formatHostPort(parsed) } : proxy
}

/** A proxy there would let a sandbox at the networks of this machine. Where a name leads is seen when it is dialled. */
function isClosed(host: string): boolean {
  const address = toNumber(host)
  return address !== undefined && contains(toRanges(closedRanges), address)
}
