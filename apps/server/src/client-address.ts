import { isIPv4 } from 'node:net'

/** Identifies a client: an IPv4 address, or an IPv6 /64 network, since a single machine has all addresses of one. */
export function clientOf(remoteAddress: string): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '')
  return isIPv4(address) || address === '::1' ? address : networkOf(address)
}

export function isLoopback(client: string): boolean {
  return client === '::1' || client.startsWith('127.')
}

function networkOf(address: string): string {
  const [before = '', after] = address.replace(/%.*$/, '').split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length)
  const groups = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail]
  return `${groups.slice(0, 4).join(':')}::/64`
}
