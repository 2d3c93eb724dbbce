import { BlockList, isIPv4 } from 'node:net'
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

/**
 * What is no public address: a proxy there would let a sandbox at the networks of this machine. A name may lead there as
 * well, at any time: whoever connects to it checks that.
 */
const internalRanges = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const

const internal = new BlockList()
for (const [address, bits] of internalRanges) internal.addSubnet(address, bits)

/** Nothing that was sent is repeated: people write passwords into addresses, too. */
export function checkProxy({ address, username, password }: EgressProxy, field: string): void {
  const parsed = parseHostPort(address)
  if (!parsed) {
    throw invalid(
      `${field}.address`,
      'must be host:port with an IPv4 address or a domain, such as "proxy.example.com:1080"',
    )
  }
  if (isIPv4(parsed.host) && internal.check(parsed.host)) {
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
