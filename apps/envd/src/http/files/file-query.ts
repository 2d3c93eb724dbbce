/** Query of /files. */
import { Fault } from '@atoll/kit/fault'

export interface FileQuery {
  readonly path?: string | undefined
  readonly username?: string | undefined
  readonly signature?: string | undefined
  readonly expiration?: number | undefined
}

/** Threats: a query that the edge and envd read differently. So ambiguous queries are rejected. */
export function parseFileQuery(url: string): FileQuery {
  const found = new Map<string, string>()
  const start = url.indexOf('?')
  const pairs = start < 0 ? [] : url.slice(start + 1).split('&')
  for (const pair of pairs) {
    const [name = '', ...rest] = pair.split('=')
    const key = decode(name)
    if (!known.has(key)) continue
    if (found.has(key)) refuse(`The query contains ${key} twice. Send it once.`)
    found.set(key, decode(rest.join('=')))
  }
  const expiration = found.get('signature_expiration')
  if (expiration !== undefined && !/^-?\d{1,15}$/.test(expiration)) {
    refuse(`signature_expiration '${expiration}' is not a Unix time in seconds`)
  }
  return {
    path: found.get('path'),
    username: found.get('username'),
    signature: found.get('signature'),
    expiration: expiration === undefined ? undefined : Number(expiration),
  }
}

const known: ReadonlySet<string> = new Set([
  'path',
  'username',
  'signature',
  'signature_expiration',
])

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new Fault('invalid', badQuery, 'The query is not valid percent-encoded UTF-8', { cause })
  }
}

/** Fault reason whose response is plain text, unlike other faults. */
export const badQuery = 'bad_query'

function refuse(message: string): never {
  throw new Fault('invalid', badQuery, message)
}
