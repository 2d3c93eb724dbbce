/**
 * Chooses the headers and trailers that the edge forwards, in both directions.
 *
 * Threats: a client could hide a second request in hop-by-hop headers (RFC 9110, 7.6.1), which include the framing
 * headers, or forge its address in X-Forwarded-For. The edge never copies framing headers; it writes its own from the
 * message as node:http parsed it. Names and values come from the same parser, so they contain no line breaks.
 */
import type { IncomingMessage } from 'node:http'
import { hopByHop } from '@atoll/kit/http/hop-by-hop'
import type { Target } from '../domain/route.ts'
import { sharedHostHeaders, isDroppedFromResponse, isDroppedFromRequest } from './shared-host.ts'

const framing = new Set(['content-length', 'host'])
const methodsWithoutBody = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

/** Flat list of names and values, as node:http expects. */
export type RawHeaders = string[]

export function requestHeaders(req: IncomingMessage, target: Target): RawHeaders {
  const headers = [...hostHeaders(target), ...forwardedHeaders(req, droppedFromRequest(target))]
  if (/\btrailers\b/i.test(String(req.headers.te ?? ''))) headers.push('TE', 'trailers')
  if (hasChunkedBody(req)) headers.push('Transfer-Encoding', 'chunked')
  else if (req.headers['content-length'] !== undefined) {
    headers.push('Content-Length', req.headers['content-length'])
  } else if (!methodsWithoutBody.has(req.method ?? '')) headers.push('Content-Length', '0')
  headers.push('Connection', 'close')
  return headers
}

export function upgradeHeaders(req: IncomingMessage, target: Target): RawHeaders {
  const protocol = req.headers.upgrade ?? ''
  const headers = [...hostHeaders(target), ...forwardedHeaders(req, droppedFromRequest(target))]
  return [...headers, 'Connection', 'Upgrade', 'Upgrade', protocol]
}

export function responseHeaders(incoming: IncomingMessage, target: Target): RawHeaders {
  const length = incoming.headers['content-length']
  const headers = forwardedHeaders(incoming, droppedFromResponse(target))
  if (target.isOnSharedHost) headers.push(...sharedHostHeaders)
  // A 204 has no body, and a client that trusts the length would wait for a body.
  if (length !== undefined && incoming.statusCode !== 204) headers.push('Content-Length', length)
  return headers
}

function hostHeaders({ authority, maskedAuthority }: Target): RawHeaders {
  const headers = ['Host', authority]
  if (maskedAuthority !== undefined) headers.push('X-Forwarded-Host', maskedAuthority)
  return headers
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
