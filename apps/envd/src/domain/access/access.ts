/** Who is let in: the access token of the sandbox, the node's own secret, and the user that a caller wants to be. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Settings } from '../sandbox/settings.ts'

/** `unless_signed`: the URL has to prove that whoever holds the token made it. */
export type Access = 'granted' | 'not_ready' | 'denied' | 'needs_signature'

export function decideAccess(
  settings: Settings | undefined,
  request: { readonly method: string; readonly path: string; readonly token: string | undefined },
): Access {
  const route = `${request.method} ${request.path}`
  if (routesWithoutAccessToken.has(route)) return 'granted'
  // Without settings nobody knows whether this sandbox is to be secured.
  if (settings === undefined) return 'not_ready'
  if (settings.accessToken === undefined) return 'granted'
  if (request.token === undefined && signableRoutes.has(route)) return 'needs_signature'
  return isSameSecret(settings.accessToken, request.token) ? 'granted' : 'denied'
}

/** Those of the node have a check of their own. */
const routesWithoutAccessToken: ReadonlySet<string> = new Set([
  'GET /health',
  'POST /init',
  'POST /prepare',
  'POST /trust',
  'GET /logs',
])
const signableRoutes: ReadonlySet<string> = new Set(['GET /files', 'POST /files'])

/** Takes the same time wherever the two differ. */
export function isSameSecret(expected: string | undefined, given: string | undefined): boolean {
  if (expected === undefined || given === undefined) return false
  return timingSafeEqual(digest(expected), digest(given))
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

/** The user named by an Authorization header of the Basic scheme; the password has no meaning. */
export function basicUser(authorization: string | undefined): string | undefined {
  const encoded = /^basic +([A-Za-z0-9+/=_-]*)\s*$/i.exec(authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const [name] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)
  return name || undefined
}
