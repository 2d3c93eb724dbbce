import { hopByHop } from '@atoll/kit/hop-by-hop'
import { valuesOf } from './forwarded-request.ts'
import type { RequestHead } from './forwarded-request.ts'

/**
 * The headers of what is passed on, as flat lists of names and values in turn.
 *
 * Threats: headers for the next hop only (RFC 9110, 7.6.1), and those that frame a message, by which one could be hidden
 * in another. Framing is never copied: it is written from how the parser read the message, and no rule changes it. A
 * client can have headers taken out by naming them in `Connection`; what a rule sets comes after that.
 */
export function requestHeaders(
  request: RequestHead,
  rule: Readonly<Record<string, string>>,
): string[] {
  const ours = Object.entries(rule).filter(([name]) => !isReserved(name.toLowerCase()))
  const replaced = new Set(ours.map(([name]) => name.toLowerCase()))
  const kept = endToEnd(request.rawHeaders).filter(([name]) => !replaced.has(name.toLowerCase()))
  return [...kept.flat(), ...ours.flat(), ...framingOf(request)]
}

/** `protocol` is the one that is offered. */
export function upgradeHeaders(
  request: RequestHead,
  rule: Readonly<Record<string, string>>,
  protocol: string,
): string[] {
  return [...requestHeaders(request, rule), 'Connection', 'Upgrade', 'Upgrade', protocol]
}

/** Without any length, what writes it finds a framing of its own. */
export function responseHeaders(response: {
  readonly statusCode?: number | undefined
  readonly rawHeaders: readonly string[]
}): string[] {
  const [length] = valuesOf(response, 'content-length')
  const isCoded = valuesOf(response, 'transfer-encoding').length > 0
  // An offer of HTTP/3, which would go past us.
  const headers = endToEnd(response.rawHeaders)
    .filter(([name]) => name.toLowerCase() !== 'alt-svc')
    .flat()
  // A 204 has no body whatever it says; a client that believed the length would wait for one.
  const hasLength = length !== undefined && !isCoded && response.statusCode !== 204
  return hasLength ? [...headers, 'Content-Length', length] : headers
}

export function hasBody(request: RequestHead): boolean {
  return isChunked(request) || Number(valuesOf(request, 'content-length')[0] ?? 0) > 0
}

const methodsWithoutBody = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

function isChunked(request: RequestHead): boolean {
  return valuesOf(request, 'transfer-encoding').length > 0
}

function framingOf(request: RequestHead): string[] {
  if (isChunked(request)) return ['Transfer-Encoding', 'chunked']
  const [length] = valuesOf(request, 'content-length')
  if (length !== undefined) return ['Content-Length', length]
  return methodsWithoutBody.has(request.method ?? '') ? [] : ['Content-Length', '0']
}

/** What no rule may set. */
function isReserved(name: string): boolean {
  return name === 'content-length' || name === 'expect' || hopByHop.has(name)
}

function endToEnd(rawHeaders: readonly string[]): [string, string][] {
  const connection = valuesOf({ rawHeaders }, 'connection').join(',')
  const named = new Set(connection.toLowerCase().split(/[\s,]+/))
  named.delete('host') // it is whom the request is for
  return pairs(rawHeaders).filter(([name]) => {
    const lower = name.toLowerCase()
    return !hopByHop.has(lower) && lower !== 'content-length' && !named.has(lower)
  })
}

function pairs(raw: readonly string[]): [string, string][] {
  const result: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) result.push([raw[at] ?? '', raw[at + 1] ?? ''])
  return result
}
