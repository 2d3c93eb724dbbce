import { sessionSeconds } from './sessions.ts'

/**
 * Cookie of a session. Over TLS its name has the prefix `__Host-`: then a sibling host, such as the page of a sandbox,
 * cannot set it. Without TLS browsers refuse that prefix.
 */
const plainName = 'atoll-session'
const secureName = `__Host-${plainName}`

const attributes = 'Path=/; HttpOnly; SameSite=Strict'

export function sessionCookie(token: string, isSecure: boolean): string {
  const name = isSecure ? `${secureName}=${token}; Secure` : `${plainName}=${token}`
  return `${name}; ${attributes}; Max-Age=${sessionSeconds}`
}

export function expiredCookies(): string[] {
  return [
    `${secureName}=; Secure; ${attributes}; Max-Age=0`,
    `${plainName}=; ${attributes}; Max-Age=0`,
  ]
}

/** Returns the session token. Two cookies of one name are ambiguous: neither is used. */
export function readSessionCookie(header: string | undefined): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  for (const name of [secureName, plainName]) {
    const values = pairs.filter((pair) => pair.startsWith(`${name}=`))
    if (values.length > 1) return undefined
    const value = values[0]?.slice(name.length + 1)
    if (value) return value
  }
  return undefined
}
