export type Encoding = 'gzip' | 'identity'

/** Encodings that an Accept-Encoding header allows (RFC 9110, 12.5.3). */
export interface AcceptedEncodings {
  /** Undefined if the client accepts neither encoding. */
  readonly best: Encoding | undefined
  readonly identity: boolean
}

export function parseAcceptEncoding(header: string | undefined): AcceptedEncodings {
  const preferences = parse(header ?? '')
  const weightOf = (coding: string) =>
    preferences.find((preference) => preference.coding === coding)?.weight
  const others = weightOf('*')
  const identity = (weightOf('identity') ?? others) !== 0
  const gzip = weightOf('gzip') ?? weightOf('x-gzip') ?? others ?? 0
  const best = preferences
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ coding }) => toEncoding(coding, identity))
    .find((encoding) => (encoding === 'gzip' ? gzip > 0 : encoding === 'identity' && identity))
  return { best: best ?? (identity ? 'identity' : undefined), identity }
}

/** Maps `*` to the encoding that costs least. */
function toEncoding(coding: string, identity: boolean): Encoding | undefined {
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  if (coding === '*') return identity ? 'identity' : 'gzip'
  return coding === 'identity' ? 'identity' : undefined
}

interface EncodingPreference {
  readonly coding: string
  readonly weight: number
}

/** Skips malformed items. */
function parse(header: string): EncodingPreference[] {
  return header.split(',').flatMap((item) => {
    const match = /^\s*([\w!#$%&'*+.^`|~-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?$/i.exec(item)
    if (!match?.[1]) return []
    return [{ coding: match[1].toLowerCase(), weight: Math.min(1, Number(match[2] ?? 1)) }]
  })
}
