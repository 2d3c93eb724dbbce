import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { rawBodyOf } from '@atoll/kit/http/raw-body'
import type { Refusal } from '../domain/refusal.ts'
import { renderErrorPage, wantsPage } from './error-page.ts'

/** Sends an error response of the edge itself. */
export function refuse(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  const answer = responseFor(refusal)
  const page = answer.title !== undefined && wantsPage(req.headers)
  const type = answer.title === undefined ? 'text/plain' : page ? 'text/html' : 'application/json'
  const body =
    answer.title === undefined
      ? `${answer.message}\n`
      : page
        ? renderErrorPage({ title: answer.title, text: answer.message })
        : JSON.stringify({ ...answer.details, message: answer.message, code: answer.status })
  keepConnectionOpen(req, res)
  // The reason phrase is explicit, because a failed `writeHead` may have left another one.
  res.writeHead(answer.status, STATUS_CODES[answer.status] ?? '', {
    'Content-Type': `${type}; charset=utf-8`,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...(answer.status === 503 && { 'Retry-After': '1' }),
    'X-Content-Type-Options': 'nosniff',
    ...(page && { 'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'" }),
  })
  res.write(body)
  endResponse(req, res)
}

const lingerMs = 30_000

/** While the request is still arriving, the client closes the connection, even with `Connection: close`. */
export function keepConnectionOpen(req: IncomingMessage, res: ServerResponse): void {
  if (!req.complete && !rawBodyOf(req)) res.shouldKeepAlive = true
}

/** Ends the response. The rest of the request is read and discarded. */
export function endResponse(req: IncomingMessage, res: ServerResponse): void {
  const taken = rawBodyOf(req)
  if (taken) taken.discard()
  else if (!req.complete && !req.socket.destroyed) {
    req.unpipe()
    linger(req, () => req.socket.destroy())
  }
  res.end()
}

/**
 * Reads and discards input until the client stops, within a limit. Closing earlier would reset the connection, and the
 * client could lose the response.
 */
export function linger(from: Readable, giveUp: () => void): void {
  from.resume()
  const timer = setTimeout(giveUp, lingerMs)
  timer.unref()
  from.once('close', () => clearTimeout(timer))
}

interface ErrorResponse {
  readonly status: number
  readonly message: string
  /** Absent for a plain text response. */
  readonly title?: string
  readonly details?: Readonly<Record<string, string | number>>
}

export function responseFor(refusal: Refusal): ErrorResponse {
  if ('sandboxId' in refusal) return sandboxResponse(refusal)
  switch (refusal.kind) {
    case 'bad_request':
      return { status: 400, message: refusal.message }
    case 'unsupported':
      return { status: 501, message: refusal.message }
    case 'internal_path':
      return {
        status: 404,
        title: 'Path not found',
        message: `The path ${refusal.path} is not open to clients`,
        details: { path: refusal.path },
      }
    case 'edge_full':
      return {
        status: 503,
        title: 'Too many open requests',
        message: 'Too many requests to sandboxes are open. Try again in a moment',
      }
    case 'unknown_signature':
      return {
        status: 401,
        title: 'Unknown signature',
        message: 'No running sandbox has signed this URL, or the URL was changed',
      }
    case 'too_many_signatures':
      return {
        status: 429,
        title: 'Too many requests',
        message: 'Too many requests with unknown signatures. Try again in a moment',
      }
    case 'node_unreachable':
      return { status: 502, message: 'The node that runs the sandbox does not answer' }
    case 'api_unreachable':
      return {
        status: 503,
        title: 'Sandbox cannot be looked up',
        message:
          'No api of the fleet answers, so the sandbox cannot be looked up. Try again in a moment',
      }
    case 'internal':
      return { status: 500, message: 'Internal error' }
    default:
      return refusal satisfies never
  }
}

function sandboxResponse(refusal: Extract<Refusal, { readonly sandboxId: string }>): ErrorResponse {
  const { sandboxId } = refusal
  const details = { sandboxId }
  switch (refusal.kind) {
    case 'sandbox_not_found':
      return {
        status: 502,
        title: `Sandbox ${sandboxId} not found`,
        message: 'The sandbox was not found',
        details,
      }
    case 'forbidden':
      return { status: 403, title: refusal.title, message: refusal.message, details }
    case 'in_transition':
      return {
        status: 409,
        title: `Sandbox ${sandboxId} is not ready`,
        message: refusal.message,
        details,
      }
    case 'sandbox_limit':
      return {
        status: 429,
        title: `Sandbox ${sandboxId} cannot be resumed`,
        message: refusal.message,
        details,
      }
    case 'port_closed':
      return {
        status: 502,
        title: `Port ${refusal.port} of sandbox ${sandboxId} is closed`,
        message: `The sandbox is running, but nothing answers on its port ${refusal.port}`,
        details: { ...details, port: refusal.port },
      }
    case 'too_many_requests':
      return {
        status: 429,
        title: `Too many requests to sandbox ${sandboxId}`,
        message: `The sandbox has reached its limit of open requests (${refusal.limit})`,
        details: { ...details, connectionLimit: refusal.limit },
      }
    default:
      return refusal satisfies never
  }
}
