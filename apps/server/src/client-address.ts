import { isIPv4 } from 'node:net'

/**
 * What counts as one client: an IPv4 address, or a network of 64 bits in IPv6, of which a single machine has all addresses.
 * All of loopback is one client.
 */
export function clientOf(remoteAddress: string): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '')
  if (isIPv4(address)) return address.startsWith('127.') ? 'loopback' : address
  if (address === '::1') return 'loopback'
  return networkOf(address)
}

function networkOf(address: string): string {
  const [before = '', after] = address.replace(/%.*$/, '').split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length)
  const groups = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail]
  return `${groups.slice(0, 4).join(':')}::/64`
}
