/** Access rules: the access token of the sandbox, the node's secret, and the user that a request acts as. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Settings } from '../sandbox/settings.ts'

/** `needs_signature`: no token was sent, so the URL must carry a signature made with the token. */
export type Access = 'granted' | 'not_ready' | 'denied' | 'needs_signature'

export function decideAccess(
  settings: Settings | undefined,
  request: { readonly method: string; readonly path: string; readonly token: string | undefined },
): Access {
  const route = `${request.method} ${request.path}`
  if (routesWithoutAccessToken.has(route)) return 'granted'
  // Settings say whether the sandbox needs a token, so envd admits no client before they arrive.
  if (settings === undefined) return 'not_ready'
  if (settings.accessToken === undefined) return 'granted'
  if (request.token === undefined && signableRoutes.has(route)) return 'needs_signature'
  return isSameSecret(settings.accessToken, request.token) ? 'granted' : 'denied'
}

/** Routes for the node check the node's secret instead. */
const routesWithoutAccessToken: ReadonlySet<string> = new Set([
  'GET /health',
  'POST /init',
  'POST /prepare',
  'POST /trust',
  'GET /logs',
])
const signableRoutes: ReadonlySet<string> = new Set(['GET /files', 'POST /files'])

/** Compares in constant time. */
export function isSameSecret(expected: string | undefined, given: string | undefined): boolean {
  if (expected === undefined || given === undefined) return false
  return timingSafeEqual(digest(expected), digest(given))
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

/** Returns the user name of a Basic Authorization header; the password is ignored. */
export function basicUser(authorization: string | undefined): string | undefined {
  const encoded = /^basic +([A-Za-z0-9+/=_-]*)\s*$/i.exec(authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const [name] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)
  return name || undefined
}
