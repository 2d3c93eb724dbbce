import { isIP } from 'node:net'
import type { IncomingMessage } from 'node:http'

/** Returns the lower-case host name of a Host header or authority, without the port. */
function hostNameOf(authority: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(authority)
  return (bracketed?.[1] ?? authority.split(':', 1)[0] ?? '').toLowerCase()
}

/**
 * Checks a host name for the dashboard. Names that the edge routes by header, or that can name a port of a sandbox, are
 * refused: content of a sandbox must never appear on the dashboard's origin.
 */
export function isUsableDashboardHost(name: string): boolean {
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/.test(name)) return false
  return isIP(name) === 0 && !name.startsWith('sandbox.') && !/^[0-9]+-/.test(name)
}

/** True if the Host header or an absolute request target names the dashboard. */
export function isForHost(req: Pick<IncomingMessage, 'headers' | 'url'>, name: string): boolean {
  if (hostNameOf(req.headers.host ?? '') === name) return true
  const absolute = /^https?:\/\/([^/?#]*)/i.exec(req.url ?? '')
  return absolute?.[1] !== undefined && hostNameOf(absolute[1]) === name
}
