/**
 * Answers malformed requests with a reason; Node.js sends only a bare status. Threats: a hostile client may be in the
 * middle of reading a response. Nothing may be written into that, so such a connection is only closed.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export function explainClientErrors(server: Server): void {
  const latest = new WeakMap<Duplex, ServerResponse>()
  const ending = new WeakSet<Duplex>()
  const secured = new WeakSet<Duplex>()
  server.on('secureConnection', (socket: Duplex) => void secured.add(socket))
  server.on('request', (req, res) => {
    latest.set(req.socket, res)
    // An idle connection must not keep its last response in memory.
    res.once('close', () => void (latest.get(req.socket) === res && latest.delete(req.socket)))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (ending.has(socket)) return // the error repeats for further bytes
    ending.add(socket)
    const isHandshake = 'encrypted' in socket && !secured.has(socket)
    const answer = latest.get(socket)
    const isAnswering = answer !== undefined && answer.headersSent && !answer.writableFinished
    if (!socket.writable || isAnswering || isHandshake) socket.destroy()
    else finish(socket, toResponse(error.code))
  })
}

const lingerMs = 2_000

/**
 * Sends the response and closes later: closing while the client still sends would reset the connection and may lose the
 * response.
 */
function finish(socket: Duplex, response: string): void {
  socket.end(response)
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}

function toResponse(code: string | undefined): string {
  const { status, reason, message } = refusals[code ?? ''] ?? malformed
  const body = JSON.stringify({ code: status, message })
  return [
    `HTTP/1.1 ${status} ${reason}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

interface ClientRefusal {
  readonly status: number
  readonly reason: string
  readonly message: string
}

const malformed: ClientRefusal = {
  status: 400,
  reason: 'Bad Request',
  message: 'This is not a request of HTTP/1.1: check its request line, headers and framing',
}

const refusals: Readonly<Record<string, ClientRefusal>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    message: 'The headers are too large: at most 16 KiB are accepted, the path included',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    reason: 'Payload Too Large',
    message: 'The chunk extensions of the body are too large: leave them out',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: 'Request Timeout',
    message: 'The request did not arrive in time: send it again',
  },
}
