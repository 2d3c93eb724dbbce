import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { hasBody } from '../domain/http/forwarded-headers.ts'
import type { Refusal } from '../domain/http/forwarded-request.ts'
import { UpstreamCertificateError } from '../domain/certificates/certificate-error.ts'
import { resetConnection } from './reset-connection.ts'

/** Sends an error response of the proxy itself, then closes the connection. */
export function refuse(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  const { status, message } = refusal
  const body = `${message}\n`
  const { socket } = req
  const hasUnreadBody = hasBody(req) && !req.complete
  res.shouldKeepAlive = hasUnreadBody
  res.writeHead(status, STATUS_CODES[status] ?? '', {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  })
  res.end(body)
  if (!hasUnreadBody) return
  req.unpipe()
  linger(req, () => resetConnection(socket))
  req.once('close', () => socket.destroySoon())
}

/** Reveals nothing about the request or the response. */
export function upstreamFailure(error: unknown, name: string): Refusal {
  return error instanceof UpstreamCertificateError
    ? { status: 502, message: `The certificate of ${name} is not valid (${error.message})` }
    : { status: 502, message: `${name} could not be reached` }
}

/**
 * Lingering close: closing while the client still sends would reset the connection and could drop our response.
 * Discards what the client sends until it stops or a timeout passes.
 */
export function linger(from: Readable, giveUp: () => void): void {
  from.resume()
  const timer = setTimeout(giveUp, lingerMs)
  timer.unref()
  from.once('close', () => clearTimeout(timer))
}

const lingerMs = 30_000
