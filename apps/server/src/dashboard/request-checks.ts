/**
 * Decides which requests a browser may send to the dashboard. Threats: a page of a sandbox, on a sibling host name that
 * may count as the same site, sends requests with the user's cookie. `Origin` and `Sec-Fetch-Site` are set by the
 * browser and cannot be changed by a page.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

export interface CheckedRequest {
  readonly method?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly isUpgrade?: boolean
}

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** Returns why the request is refused, or undefined if it is acceptable. */
export function findCrossOriginObjection(request: CheckedRequest): string | undefined {
  const { headers } = request
  const isWrite = !readMethods.has(request.method ?? '') || request.isUpgrade === true
  const site = headers['sec-fetch-site']
  if (typeof site === 'string' && !(site === 'same-origin' || (site === 'none' && !isWrite))) {
    return `The request comes from another page (Sec-Fetch-Site: ${site})`
  }
  const { origin } = headers
  if (origin === undefined) return isWrite ? 'The request has no Origin header' : undefined
  return isOwnOrigin(origin, headers.host) ? undefined : 'The request comes from another origin'
}

/** Accepts both schemes: a proxy in front of the server may terminate TLS. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const own = (host ?? '').toLowerCase()
  return own !== '' && [`http://${own}`, `https://${own}`].includes(origin.toLowerCase())
}

/**
 * True if the browser reaches the dashboard over TLS: of this server, or of a proxy in front. The header of a proxy needs no
 * trust here, since a secure request has to show more.
 */
export function isSecureRequest({
  headers,
  socket,
}: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
  const forwarded = String(headers['x-forwarded-proto'] ?? '').toLowerCase()
  return 'encrypted' in socket || isSecureOrigin(headers) || forwarded.split(',').some(isHttps)
}

function isHttps(protocol: string): boolean {
  return protocol.trim() === 'https'
}

export function isSecureOrigin(headers: IncomingHttpHeaders): boolean {
  return headers.origin?.toLowerCase().startsWith('https://') ?? false
}
