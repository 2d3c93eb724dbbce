/**
 * Chooses the headers and trailers that the edge forwards, in both directions.
 *
 * Threats: a client could hide a second request in hop-by-hop headers (RFC 9110, 7.6.1), which include the framing
 * headers, or forge its address in X-Forwarded-For. The edge never copies framing headers; it writes its own from the
 * message as node:http parsed it. Names and values come from the same parser, so they contain no line breaks.
 */
import type { IncomingMessage } from 'node:http'
import { hopByHop } from '@atoll/kit/http/hop-by-hop'
import { originOf } from '../domain/forwarded.ts'
import type { IsTrustedProxy } from '../domain/forwarded.ts'
import type { Target } from '../domain/route.ts'
import { sharedHostHeaders, isDroppedFromResponse, isDroppedFromRequest } from './shared-host.ts'

const framing = new Set(['content-length', 'host'])
const methodsWithoutBody = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

/** Flat list of names and values, as node:http expects. */
export type RawHeaders = string[]

/** `origin` has the X-Forwarded-* headers of `originHeaders`, if the edge sets them. */
export function requestHeaders(
  req: IncomingMessage,
  target: Target,
  origin?: RawHeaders,
): RawHeaders {
  const headers = targetHeaders(req, target, origin)
  if (/\btrailers\b/i.test(String(req.headers.te ?? ''))) headers.push('TE', 'trailers')
  if (hasChunkedBody(req)) headers.push('Transfer-Encoding', 'chunked')
  else if (req.headers['content-length'] !== undefined) {
    headers.push('Content-Length', req.headers['content-length'])
  } else if (!methodsWithoutBody.has(req.method ?? '')) headers.push('Content-Length', '0')
  headers.push('Connection', 'close')
  return headers
}

export function upgradeHeaders(
  req: IncomingMessage,
  target: Target,
  origin?: RawHeaders,
): RawHeaders {
  const protocol = req.headers.upgrade ?? ''
  return [...targetHeaders(req, target, origin), 'Connection', 'Upgrade', 'Upgrade', protocol]
}

export function responseHeaders(incoming: IncomingMessage, target: Target): RawHeaders {
  const length = incoming.headers['content-length']
  const headers = forwardedHeaders(incoming, droppedFromResponse(target))
  if (target.isOnSharedHost) headers.push(...sharedHostHeaders)
  // A 204 has no body, and a client that trusts the length would wait for a body.
  if (length !== undefined && incoming.statusCode !== 204) headers.push('Content-Length', length)
  return headers
}

/** X-Forwarded-* headers, by which a program in a sandbox learns who sent the request, and how. */
export function originHeaders(
  req: IncomingMessage,
  { authority, maskedAuthority }: Target,
  isTrusted: IsTrustedProxy,
): RawHeaders {
  const { socket, headers } = req
  const origin = originOf(
    {
      address: socket.remoteAddress ?? '',
      isTls: 'encrypted' in socket,
      authority: maskedAuthority ?? authority,
      headers,
    },
    isTrusted,
  )
  return [
    ...['X-Forwarded-For', origin.for],
    ...['X-Forwarded-Proto', origin.proto],
    ...['X-Forwarded-Host', origin.host],
  ]
}

function targetHeaders(req: IncomingMessage, target: Target, origin?: RawHeaders): RawHeaders {
  const { authority, maskedAuthority } = target
  const masked = maskedAuthority === undefined ? [] : ['X-Forwarded-Host', maskedAuthority]
  return [
    ...['Host', authority],
    ...(origin ?? masked),
    ...forwardedHeaders(req, droppedFromRequest(target)),
  ]
}

export function requestTrailers(req: IncomingMessage, target: Target): [string, string][] {
  return forwardedTrailers(req, droppedFromRequest(target))
}

export function responseTrailers(incoming: IncomingMessage, target: Target): [string, string][] {
  return forwardedTrailers(incoming, droppedFromResponse(target))
}

/** Drops trailers that affect routing or framing: the edge has already routed and framed the message. */
function forwardedTrailers(message: IncomingMessage, isDropped: IsDropped): [string, string][] {
  return pairs(message.rawTrailers).filter(([name]) => {
    const lower = name.toLowerCase()
    return !hopByHop.has(lower) && !framing.has(lower) && !isSetByEdge(lower) && !isDropped(lower)
  })
}

/** Expects a lower-case name. */
type IsDropped = (name: string) => boolean

function droppedFromRequest({ isOnSharedHost }: Target): IsDropped {
  return (name) => isSetByEdge(name) || (isOnSharedHost && isDroppedFromRequest(name))
}

function droppedFromResponse({ isOnSharedHost }: Target): IsDropped {
  return (name) => isOnSharedHost && isDroppedFromResponse(name)
}

function hasChunkedBody(req: IncomingMessage): boolean {
  return req.headers['transfer-encoding'] !== undefined
}

export function hasBody(req: IncomingMessage): boolean {
  return hasChunkedBody(req) || Number(req.headers['content-length'] ?? 0) > 0
}

/** True for `Expect`, which the edge answers itself, and for headers that could forge the client's address or host. */
function isSetByEdge(name: string): boolean {
  return name === 'expect' || name === 'forwarded' || name.startsWith('x-forwarded-')
}

function forwardedHeaders(message: IncomingMessage, isDropped: IsDropped): RawHeaders {
  const connectionTokens = new Set((message.headers.connection ?? '').toLowerCase().split(/[\s,]+/))
  return pairs(message.rawHeaders)
    .filter(([name]) => {
      const lower = name.toLowerCase()
      return (
        !hopByHop.has(lower) &&
        !framing.has(lower) &&
        !connectionTokens.has(lower) &&
        !isDropped(lower)
      )
    })
    .flat()
}

function pairs(raw: readonly string[]): [string, string][] {
  const result: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) result.push([raw[at] ?? '', raw[at + 1] ?? ''])
  return result
}
