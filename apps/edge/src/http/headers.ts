/**
 * Which headers pass, in both directions.
 *
 * Threats: headers that speak to the next hop and not to the other end (RFC 9110, 7.6.1), among them the ones
 * that frame the message, by which a request could be smuggled inside another; and claims about where a
 * request comes from. Framing is therefore never copied from a peer's word: it is written anew from how the
 * parser read the message. Names and values come out of that parser, so they hold no line breaks.
 */
import type { IncomingMessage } from 'node:http'
import { hopByHop } from '@atoll/kit/http/hop-by-hop'
import type { Target } from '../domain/route.ts'
import { answerHeaders, isDroppedFromAnswer, isDroppedFromRequest } from './shared-host.ts'

const framing = new Set(['content-length', 'host'])
const methodsWithoutBody = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

/** Flat list of names and values, as node:http takes it. */
export type RawHeaders = string[]

export function requestHeaders(req: IncomingMessage, target: Target): RawHeaders {
  const headers = [...hostHeaders(target), ...passing(req, droppedFromRequest(target))]
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
  const headers = [...hostHeaders(target), ...passing(req, droppedFromRequest(target))]
  return [...headers, 'Connection', 'Upgrade', 'Upgrade', protocol]
}

export function responseHeaders(incoming: IncomingMessage, target: Target): RawHeaders {
  const length = incoming.headers['content-length']
  const headers = passing(incoming, droppedFromAnswer(target))
  if (target.isOnSharedHost) headers.push(...answerHeaders)
  // A 204 has no body whatever it says; a client that believed the length would wait for one.
  if (length !== undefined && incoming.statusCode !== 204) headers.push('Content-Length', length)
  return headers
}

function hostHeaders({ authority, maskedAuthority }: Target): RawHeaders {
  const headers = ['Host', authority]
  if (maskedAuthority !== undefined) headers.push('X-Forwarded-Host', maskedAuthority)
  return headers
}

export function requestTrailers(req: IncomingMessage, target: Target): [string, string][] {
  return passingTrailers(req, droppedFromRequest(target))
}

export function responseTrailers(incoming: IncomingMessage, target: Target): [string, string][] {
  return passingTrailers(incoming, droppedFromAnswer(target))
}

/** Trailers come after the decisions were made, so nothing that decides may be among them. */
function passingTrailers(message: IncomingMessage, isDropped: IsDropped): [string, string][] {
  return pairs(message.rawTrailers).filter(([name]) => {
    const lower = name.toLowerCase()
    return !hopByHop.has(lower) && !framing.has(lower) && !isOurs(lower) && !isDropped(lower)
  })
}

/** Takes the lower-case name of a header. */
type IsDropped = (name: string) => boolean

function droppedFromRequest({ isOnSharedHost }: Target): IsDropped {
  return (name) => isOurs(name) || (isOnSharedHost && isDroppedFromRequest(name))
}

function droppedFromAnswer({ isOnSharedHost }: Target): IsDropped {
  return (name) => isOnSharedHost && isDroppedFromAnswer(name)
}

function hasChunkedBody(req: IncomingMessage): boolean {
  return req.headers['transfer-encoding'] !== undefined
}

export function hasBody(req: IncomingMessage): boolean {
  return hasChunkedBody(req) || Number(req.headers['content-length'] ?? 0) > 0
}

/** `Expect` was answered by our server; where a request comes from is not the client's to say. */
function isOurs(name: string): boolean {
  return name === 'expect' || name === 'forwarded' || name.startsWith('x-forwarded-')
}

function passing(message: IncomingMessage, isDropped: IsDropped): RawHeaders {
  const named = new Set((message.headers.connection ?? '').toLowerCase().split(/[\s,]+/))
  return pairs(message.rawHeaders)
    .filter(([name]) => {
      const lower = name.toLowerCase()
      return !hopByHop.has(lower) && !framing.has(lower) && !named.has(lower) && !isDropped(lower)
    })
    .flat()
}

function pairs(raw: readonly string[]): [string, string][] {
  const result: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) result.push([raw[at] ?? '', raw[at + 1] ?? ''])
  return result
}
