/**
 * Forwards one request to the upstream server with the headers of the rule, and streams the response back.
 *
 * Threats: both ends are hostile. node:http parses and rewrites everything they send. An exception inside an event
 * handler would end the process, so each handler that touches their input catches.
 */
import { request } from 'node:http'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { hasBody, requestHeaders, responseHeaders } from '../domain/http/forwarded-headers.ts'
import { findRefusal, originFormPath, headerValues } from '../domain/http/forwarded-request.ts'
import { resetConnection } from './reset-connection.ts'
import { linger, refuse, upstreamFailure } from './refuse.ts'
import type { Session } from './session.ts'

export function relayRequest(req: IncomingMessage, res: ServerResponse, session: Session): void {
  const { name, headers } = session.transform
  const refusal = findRefusal(req, name)
  if (refusal) return refuse(req, res, refusal)
  const outgoing = createUpstreamRequest(req, session, requestHeaders(req, headers))
  if (!outgoing) return refuse(req, res, upstreamFailure(undefined, name))

  let isSettled = false
  const fail = (error?: unknown) => {
    if (isSettled) return
    isSettled = true
    outgoing.destroy()
    // The client knows best whether a retry is safe on a reused connection.
    if (res.headersSent || outgoing.reusedSocket) resetConnection(req.socket)
    else refuse(req, res, upstreamFailure(error, name))
  }
  outgoing.on('error', fail)
  outgoing.once('upgrade', (_incoming, socket) => {
    socket.destroy() // an upgrade that the client did not ask for
    fail()
  })
  outgoing.on('continue', () => {
    if (req.headers.expect !== undefined && !res.headersSent) res.writeContinue()
  })
  outgoing.once('response', (incoming) => {
    if (!(hasBody(req) && !req.complete)) res.shouldKeepAlive &&= outgoing.shouldKeepAlive
    forwardDrain(outgoing)
    relayResponse(incoming, res, fail)
    incoming.once('end', () => (isSettled = true))
  })
  // The server may send the whole response before it has read the whole request.
  outgoing.once('close', () => {
    if (req.complete || req.destroyed) return
    req.unpipe(outgoing)
    linger(req, () => resetConnection(req.socket))
  })
  sendBody(req, outgoing)
}

/** Returns undefined if the request cannot be written as HTTP, for example if a rule's header contains a line break. */
export function createUpstreamRequest(
  req: IncomingMessage,
  { agent, transform }: Session,
  headers: string[],
): ClientRequest | undefined {
  try {
    const { method } = req
    return request({ agent, host: transform.name, method, path: originFormPath(req), headers })
  } catch {
    return undefined
  }
}

/** Calls `fail` if the response is invalid or breaks off. */
export function relayResponse(
  incoming: IncomingMessage,
  res: ServerResponse,
  fail: () => void,
): void {
  incoming.on('error', fail)
  const { statusCode = 502, statusMessage = '' } = incoming
  const coding = headerValues(incoming, 'transfer-encoding').join().toLowerCase()
  try {
    if (coding !== '' && coding !== 'chunked') return fail()
    res.sendDate = false // forward the server's Date header, or none
    res.writeHead(statusCode, statusMessage, responseHeaders(incoming))
    res.flushHeaders()
  } catch {
    return fail() // a status below 100, or an invalid reason phrase
  }
  incoming.pipe(res)
}

function sendBody(req: IncomingMessage, outgoing: ClientRequest): void {
  req.on('error', () => {}) // the client disconnected, which closes the whole connection
  if (!hasBody(req)) return void outgoing.end()
  outgoing.flushHeaders()
  req.pipe(outgoing)
}

/**
 * Node.js stops emitting 'drain' on a request once its whole response has arrived, so forward the event of the socket.
 */
function forwardDrain(outgoing: ClientRequest): void {
  const { socket } = outgoing
  const onDrain = () => void outgoing.emit('drain')
  socket?.on('drain', onDrain)
  outgoing.once('close', () => socket?.off('drain', onDrain))
}
