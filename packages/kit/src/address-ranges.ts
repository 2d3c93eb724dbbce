import { isIPv4 } from 'node:net'
import { Fault } from './fault.ts'

/** Range of IPv4 addresses, both ends included. */
export interface AddressRange {
  readonly first: number
  readonly last: number
}

/**
 * Ranges that sandboxes can never reach: this network, private, shared, loopback, link-local (metadata), test,
 * multicast, reserved.
 */
export const closedRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]

/**
 * Parses addresses and CIDR ranges into sorted ranges that neither overlap nor touch. Throws a fault for an invalid
 * entry.
 */
export function toRanges(entries: readonly string[]): AddressRange[] {
  const merged: AddressRange[] = []
  for (const range of entries.map(toRange).toSorted((a, b) => a.first - b.first)) {
    const before = merged.at(-1)
    if (!before || range.first > before.last + 1) merged.push(range)
    else merged.splice(-1, 1, { ...before, last: Math.max(before.last, range.last) })
  }
  return merged
}

/** Binary search. `ranges` must come from `toRanges`. */
export function contains(ranges: readonly AddressRange[], address: number): boolean {
  let from = 0
  let to = ranges.length
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const range = ranges[middle]
    if (range && address > range.last) from = middle + 1
    else if (range && address < range.first) to = middle
    else return true
  }
  return false
}

/** Returns undefined unless the address is dotted-quad IPv4. */
export function toNumber(address: string): number | undefined {
  if (!isIPv4(address)) return undefined
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

export function isEverything(ranges: readonly AddressRange[]): boolean {
  return ranges[0]?.first === 0 && ranges[0].last === lastAddress
}

export function formatRange({ first, last }: AddressRange): string {
  return first === last ? formatAddress(first) : `${formatAddress(first)}-${formatAddress(last)}`
}

function toRange(entry: string): AddressRange {
  const [address = '', bits = '32', ...rest] = entry.split('/')
  const value = toNumber(address)
  if (value === undefined || !/^(\d|[12]\d|3[0-2])$/.test(bits) || rest.length > 0) {
    throw new Fault(
      'invalid',
      'bad_network_rule',
      `Invalid network rule "${entry}": expected an IPv4 address or a CIDR range such as 10.0.0.0/8`,
    )
  }
  const size = 2 ** (32 - Number(bits))
  const first = value - (value % size)
  return { first, last: first + size - 1 }
}

function formatAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}

const lastAddress = 2 ** 32 - 1
