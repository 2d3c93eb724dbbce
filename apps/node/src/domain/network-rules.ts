import { Fault } from '@atoll/kit/fault'
import ipaddr from 'ipaddr.js'

/**
 * What may leave a sandbox, beyond what is closed to all of them: what is allowed, then not what is denied, then all
 * else. IPv4 addresses and ranges.
 */
export interface NetworkRules {
  readonly allowOut: readonly string[]
  readonly denyOut: readonly string[]
}

/** Both ends belong to it. */
export interface AddressRange {
  readonly first: number
  readonly last: number
}

const lastAddress = 2 ** 32 - 1

/** In order, and so that no two overlap or touch. A fault when an entry is none: nothing unparsed goes further. */
export function toRanges(entries: readonly string[]): AddressRange[] {
  const merged: AddressRange[] = []
  for (const range of entries.map(toRange).toSorted((a, b) => a.first - b.first)) {
    const before = merged.at(-1)
    if (!before || range.first > before.last + 1) merged.push(range)
    else merged.splice(-1, 1, { ...before, last: Math.max(before.last, range.last) })
  }
  return merged
}

export function isEverything(ranges: readonly AddressRange[]): boolean {
  return ranges[0]?.first === 0 && ranges[0].last === lastAddress
}

export function formatRange({ first, last }: AddressRange): string {
  return first === last ? formatAddress(first) : `${formatAddress(first)}-${formatAddress(last)}`
}

function toRange(entry: string): AddressRange {
  const [address = '', bits = '32', ...rest] = entry.split('/')
  const isRange = ipaddr.IPv4.isValidFourPartDecimal(address) && /^(\d|[12]\d|3[0-2])$/.test(bits)
  if (!isRange || rest.length > 0) {
    throw new Fault('invalid', 'bad_network_rule', `${entry} is no IPv4 address or range`)
  }
  const size = 2 ** (32 - Number(bits))
  const value = ipaddr.IPv4.parse(address)
    .toByteArray()
    .reduce((sum, part) => sum * 256 + part, 0)
  const first = value - (value % size)
  return { first, last: first + size - 1 }
}

function formatAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}
