import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { hasBody } from '../domain/forwarded-headers.ts'
import type { Refusal } from '../domain/forwarded-request.ts'
import { UntrustedServer } from '../domain/untrusted-server.ts'
import { cut } from './cut.ts'

/** Answers in our own name, and closes the connection. */
export function refuse(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  const { status, message } = refusal
  const body = `${message}\n`
  const { socket } = req
  const isComing = hasBody(req) && !req.complete
  res.shouldKeepAlive = isComing
  res.writeHead(status, STATUS_CODES[status] ?? '', {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  })
  res.end(body)
  if (!isComing) return
  req.unpipe()
  linger(req, () => cut(socket))
  req.once('close', () => socket.destroySoon())
}

/** Says nothing of what was sent or answered. */
export function unreachable(error: unknown, name: string): Refusal {
  return error instanceof UntrustedServer
    ? { status: 502, message: `The certificate of ${name} is not valid (${error.message})` }
    : { status: 502, message: `${name} could not be reached` }
}

/**
 * Closing while the client still sends would reset the connection and could take our answer with it. So what it sends is
 * thrown away until it stops, but not for ever.
 */
export function linger(from: Readable, giveUp: () => void): void {
  from.resume()
  const timer = setTimeout(giveUp, lingerMs)
  timer.unref()
  from.once('close', () => clearTimeout(timer))
}

const lingerMs = 30_000
