import { hopByHop } from '@atoll/kit/http/hop-by-hop'
import { headerValues } from './forwarded-request.ts'
import type { RequestHead } from './forwarded-request.ts'

/**
 * Headers of forwarded messages, as flat lists of alternating names and values.
 *
 * Threats: hop-by-hop headers (RFC 9110, 7.6.1), and framing headers that could smuggle one message inside another.
 * Framing is never copied: it is derived from how the parser read the message, and no rule can change it. A client can
 * remove headers by naming them in `Connection`, so the headers of a rule are added after that step.
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

/** `protocol` is the protocol that the client offers. */
export function upgradeHeaders(
  request: RequestHead,
  rule: Readonly<Record<string, string>>,
  protocol: string,
): string[] {
  return [...requestHeaders(request, rule), 'Connection', 'Upgrade', 'Upgrade', protocol]
}

/** node:http chooses the framing if there is no Content-Length. */
export function responseHeaders(response: {
  readonly statusCode?: number | undefined
  readonly rawHeaders: readonly string[]
}): string[] {
  const [length] = headerValues(response, 'content-length')
  const isCoded = headerValues(response, 'transfer-encoding').length > 0
  // Alt-Svc offers HTTP/3, which would bypass the proxy.
  const headers = endToEnd(response.rawHeaders)
    .filter(([name]) => name.toLowerCase() !== 'alt-svc')
    .flat()
  // A 204 has no body. A client that believed its Content-Length would wait for one.
  const hasLength = length !== undefined && !isCoded && response.statusCode !== 204
  return hasLength ? [...headers, 'Content-Length', length] : headers
}

export function hasBody(request: RequestHead): boolean {
  return isChunked(request) || Number(headerValues(request, 'content-length')[0] ?? 0) > 0
}

const methodsWithoutBody = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

function isChunked(request: RequestHead): boolean {
  return headerValues(request, 'transfer-encoding').length > 0
}

function framingOf(request: RequestHead): string[] {
  if (isChunked(request)) return ['Transfer-Encoding', 'chunked']
  const [length] = headerValues(request, 'content-length')
  if (length !== undefined) return ['Content-Length', length]
  return methodsWithoutBody.has(request.method ?? '') ? [] : ['Content-Length', '0']
}

/** Headers that no rule may set. */
function isReserved(name: string): boolean {
  return name === 'content-length' || name === 'expect' || hopByHop.has(name)
}

function endToEnd(rawHeaders: readonly string[]): [string, string][] {
  const connection = headerValues({ rawHeaders }, 'connection').join(',')
  const named = new Set(connection.toLowerCase().split(/[\s,]+/))
  named.delete('host') // Host must always be forwarded
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
