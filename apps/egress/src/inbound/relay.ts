/**
 * Passes one request to the server of the name, with the headers of the rule, and its answer back, both as streams.
 *
 * Threats: both ends are hostile. Whatever they send is parsed and written anew by node:http. A throw inside an event
 * handler would end the process, so each handler that touches their input catches.
 */
import { request } from 'node:http'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { hasBody, requestHeaders, responseHeaders } from '../domain/forwarded-headers.ts'
import { objectionTo, pathOf, valuesOf } from '../domain/forwarded-request.ts'
import { cut } from './cut.ts'
import { linger, refuse, unreachable } from './refuse.ts'
import type { Session } from './session.ts'

export function relay(req: IncomingMessage, res: ServerResponse, session: Session): void {
  const { name, headers } = session.transform
  const objection = objectionTo(req, name)
  if (objection) return refuse(req, res, objection)
  const outgoing = ask(req, session, requestHeaders(req, headers))
  if (!outgoing) return refuse(req, res, unreachable(undefined, name))

  let isOver = false
  const fail = (error?: unknown) => {
    if (isOver) return
    isOver = true
    outgoing.destroy()
    // On a connection that was in use before, the client knows best whether to ask again.
    if (res.headersSent || outgoing.reusedSocket) cut(req.socket)
    else refuse(req, res, unreachable(error, name))
  }
  outgoing.on('error', fail)
  outgoing.once('upgrade', (_incoming, socket) => {
    socket.destroy() // to a protocol that nobody asked for
    fail()
  })
  outgoing.on('continue', () => {
    if (req.headers.expect !== undefined && !res.headersSent) res.writeContinue()
  })
  outgoing.once('response', (incoming) => {
    if (!(hasBody(req) && !req.complete)) res.shouldKeepAlive &&= outgoing.shouldKeepAlive
    keepDraining(outgoing)
    relayResponse(incoming, res, fail)
    incoming.once('end', () => (isOver = true))
  })
  // An answer may come before the whole request has gone, and be the last word.
  outgoing.once('close', () => {
    if (req.complete || req.destroyed) return
    req.unpipe(outgoing)
    linger(req, () => cut(req.socket))
  })
  sendBody(req, outgoing)
}

/** Undefined for what cannot be written as HTTP, such as a header of a rule with a line break. */
export function ask(
  req: IncomingMessage,
  { agent, transform }: Session,
  headers: string[],
): ClientRequest | undefined {
  try {
    const { method } = req
    return request({ agent, host: transform.name, method, path: pathOf(req), headers })
  } catch {
    return undefined
  }
}

/** Calls `fail` when it does not end as it should. */
export function relayResponse(
  incoming: IncomingMessage,
  res: ServerResponse,
  fail: () => void,
): void {
  incoming.on('error', fail)
  const { statusCode = 502, statusMessage = '' } = incoming
  const coding = valuesOf(incoming, 'transfer-encoding').join().toLowerCase()
  try {
    if (coding !== '' && coding !== 'chunked') return fail()
    res.sendDate = false // the server's, or none
    res.writeHead(statusCode, statusMessage, responseHeaders(incoming))
    res.flushHeaders()
  } catch {
    return fail() // a status below 100, an odd reason phrase
  }
  incoming.pipe(res)
}

function sendBody(req: IncomingMessage, outgoing: ClientRequest): void {
  req.on('error', () => {}) // the client left, which ends all of its connection
  if (!hasBody(req)) return void outgoing.end()
  outgoing.flushHeaders()
  req.pipe(outgoing)
}

/** Node.js does not tell any more that there is room for a request when all of its answer has come before its end. */
function keepDraining(outgoing: ClientRequest): void {
  const { socket } = outgoing
  const tell = () => void outgoing.emit('drain')
  socket?.on('drain', tell)
  outgoing.once('close', () => socket?.off('drain', tell))
}
