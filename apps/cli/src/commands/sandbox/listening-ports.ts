/** Reads which ports listen in a sandbox. Threats: the tables come from the sandbox, so only numbers are taken. */
import { envdPort } from '@atoll/client/sandbox'

export interface ListeningPort {
  readonly port: number
  /** Addresses that it listens on: `*` for all of IPv4 or IPv6. */
  readonly addresses: readonly string[]
}

/** Parses the content of /proc/net/tcp and /proc/net/tcp6. Leaves out envd. */
export function readListeningPorts(tables: string): ListeningPort[] {
  const found = new Map<number, Set<string>>()
  for (const [, address = '', hexPort = ''] of tables.matchAll(listening)) {
    const port = Number.parseInt(hexPort, 16)
    if (port === envdPort) continue
    const addresses = found.get(port) ?? new Set()
    found.set(port, addresses.add(toAddress(address)))
  }
  return [...found]
    .map(([port, addresses]) => ({ port, addresses: [...addresses].toSorted() }))
    .toSorted((a, b) => a.port - b.port)
}

/** Index, local address, remote address, and the state 0A, which is LISTEN. */
const listening = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm

/** The kernel prints addresses as 32-bit words in host byte order. */
function toAddress(hex: string): string {
  const bytes = hex.match(/.{8}/g)?.flatMap((word) => word.match(/../g)?.toReversed() ?? []) ?? []
  if (bytes.every((byte) => byte === '00')) return '*'
  const numbers = bytes.map((byte) => Number.parseInt(byte, 16))
  const isMapped = /^0{20}ffff$/i.test(bytes.slice(0, 12).join(''))
  if (numbers.length === 4 || isMapped) return numbers.slice(-4).join('.')
  const groups = bytes.join('').match(/.{4}/g) ?? []
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
