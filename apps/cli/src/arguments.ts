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
