/**
 * URLs of files that were signed and name no sandbox: `/files?path=…&signature=…`. Clients make them where all sandboxes
 * share one address. Whose token signed it is not for the edge to know; it asks.
 */
export interface SignedFile {
  readonly path: string
  readonly username: string
  readonly operation: 'read' | 'write'
  readonly signature: string
  /** Seconds since 1970, as digits. */
  readonly expiration: string | undefined
}

/** The sandbox that signed; undefined when none that runs did. Throws an `exhausted` fault when too many ask. */
export type FindSigner = (file: SignedFile) => Promise<string | undefined>

/** Whether a target in origin form may be such a URL. */
export function isSignedFile(target: string): boolean {
  return /^\/files\?(?:.*&)?signature=/.test(target)
}

/** Undefined when the query can be read in several ways or in none. What of it holds is for envd to decide. */
export function parseSignedFile(
  target: string,
  request: { readonly method?: string | undefined; readonly intended?: string | undefined },
): SignedFile | undefined {
  const query = parseQuery(target.slice(target.indexOf('?') + 1))
  const signature = query?.get('signature')
  const expiration = query?.get('signature_expiration')
  if (!query || signature === undefined) return undefined
  if (expiration !== undefined && !/^-?\d{1,15}$/.test(expiration)) return undefined
  // A browser asks beforehand, by OPTIONS, whether it may do what it intends.
  const method = request.method === 'OPTIONS' ? request.intended : request.method
  return {
    path: query.get('path') ?? '',
    username: query.get('username') ?? '',
    operation: method === 'POST' ? 'write' : 'read',
    signature,
    expiration: expiration === undefined ? undefined : String(Number(expiration)),
  }
}

const names = ['path', 'username', 'signature', 'signature_expiration']

function parseQuery(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>()
  for (const pair of text.split('&')) {
    const [name = '', ...rest] = pair.split('=')
    if (!names.includes(name)) continue
    const value = decode(rest.join('='))
    if (value === undefined || found.has(name)) return undefined
    found.set(name, value)
  }
  return found
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
