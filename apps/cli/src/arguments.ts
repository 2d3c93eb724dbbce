import { InvalidArgumentError } from 'commander'

/** Parsers for option values. Commander passes the text and, for repeatable options, the previous result. */

export function collectPair(
  text: string,
  previous: Record<string, string> = {},
): Record<string, string> {
  const split = text.indexOf('=')
  if (split < 1) throw new InvalidArgumentError('Expected name=value.')
  return { ...previous, [text.slice(0, split)]: text.slice(split + 1) }
}

export function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number of at least 1.')
}

/** Parses `90`, `90s`, `5m` or `2h` into seconds. */
export function parseDuration(text: string): number {
  const [, amount, unit = 's'] = /^(\d{1,9})([smh])?$/.exec(text) ?? []
  if (amount === undefined) {
    throw new InvalidArgumentError(
      'Expected a number of seconds, or a duration such as 90s, 5m or 2h.',
    )
  }
  return Number(amount) * (secondsPer.get(unit) ?? 1)
}

const secondsPer: ReadonlyMap<string, number> = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3600],
])

export function collectText(text: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, text]
}

export function parsePort(text: string): number {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0
  if (port >= 1 && port <= 65_535) return port
  throw new InvalidArgumentError('Expected a port from 1 to 65535.')
}

/** Parses `1048576`, `500K`, `500M` or `20G` into bytes. */
export function parseSize(text: string): number {
  const [, amount, unit = ''] = /^(\d{1,9})([KMGT]?)i?B?$/i.exec(text) ?? []
  if (amount === undefined) {
    throw new InvalidArgumentError('Expected a size such as 1048576, 500M or 20G.')
  }
  return Number(amount) * 1024 ** ' KMGT'.indexOf(unit.toUpperCase() || ' ')
}
