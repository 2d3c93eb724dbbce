/**
 * Signed file URLs without a sandbox ID: `/files?path=…&signature=…`. Clients use them where all sandboxes share one
 * address. The edge does not know the tokens, so it asks the api which sandbox signed the URL.
 */
export interface SignedFile {
  readonly path: string
  readonly username: string
  readonly operation: 'read' | 'write'
  readonly signature: string
  /** Unix seconds, as digits. */
  readonly expiration: string | undefined
}

/** Returns the ID of the running sandbox that signed, or undefined. Throws an `exhausted` fault above its rate limit. */
export type FindSigner = (file: SignedFile) => Promise<string | undefined>

/** True if a target in origin form may be a signed file URL. */
export function isSignedFile(target: string): boolean {
  return /^\/files\?(?:.*&)?signature=/.test(target)
}

/** Returns undefined if the query is ambiguous or invalid. envd decides whether the signature is valid. */
export function parseSignedFile(
  target: string,
  request: { readonly method?: string | undefined; readonly intended?: string | undefined },
): SignedFile | undefined {
  const query = parseQuery(target.slice(target.indexOf('?') + 1))
  const signature = query?.get('signature')
  const expiration = query?.get('signature_expiration')
  if (!query || signature === undefined) return undefined
  if (expiration !== undefined && !/^-?\d{1,15}$/.test(expiration)) return undefined
  // A CORS preflight names the intended method in a header.
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
