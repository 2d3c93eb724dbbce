import type { IncomingMessage } from 'node:http'
import { isSecureRequest } from './request-checks.ts'
import { operatorSeconds, sessionSeconds } from './sessions.ts'

/**
 * Cookies of sessions. Over TLS the name has the prefix `__Host-`: then a sibling host, such as the page of a sandbox,
 * cannot set it. Without TLS browsers refuse that prefix.
 */
export interface CookieKind {
  readonly name: string
  readonly seconds: number
}

const teamCookie: CookieKind = { name: 'atoll-session', seconds: sessionSeconds }
export const operatorCookie: CookieKind = { name: 'atoll-operator', seconds: operatorSeconds }

const attributes = 'Path=/; HttpOnly; SameSite=Strict'

export function sessionCookie(token: string, isSecure: boolean, kind = teamCookie): string {
  const pair = `${kind.name}=${token}`
  const start = isSecure ? `__Host-${pair}; Secure` : pair
  return `${start}; ${attributes}; Max-Age=${kind.seconds}`
}

export function expiredCookies({ name } = teamCookie): string[] {
  return [`__Host-${name}=; Secure; ${attributes}; Max-Age=0`, `${name}=; ${attributes}; Max-Age=0`]
}

/** Returns the session token of a request. */
export function readSessionToken(
  req: Pick<IncomingMessage, 'headers' | 'socket'>,
  kind = teamCookie,
): string | undefined {
  return readSessionCookie(req.headers.cookie, isSecureRequest(req), kind)
}

/**
 * Returns the session token. Over TLS only the name with the prefix counts. Two cookies of one name are ambiguous: neither
 * is used.
 */
export function readSessionCookie(
  header: string | undefined,
  isSecure: boolean,
  kind = teamCookie,
): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  const prefixed = `__Host-${kind.name}`
  for (const name of isSecure ? [prefixed] : [prefixed, kind.name]) {
    const values = pairs.filter((pair) => pair.startsWith(`${name}=`))
    if (values.length > 1) return undefined
    const value = values[0]?.slice(name.length + 1)
    if (value) return value
  }
  return undefined
}
