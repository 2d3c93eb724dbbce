/**
 * Passes one HTTP request to a sandbox and its answer back, both as streams.
 *
 * Threats: both ends are hostile. Whatever they send is parsed and written anew by node:http, never copied as
 * bytes, but for bodies, of which no more is passed than their heads promised. A throw inside an event handler
 * would end the process, so each handler that touches their input catches. Every upstream connection serves one
 * request, so none can reach a later holder of the address.
 */
import { request } from 'node:http'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { takeRawBody } from '@atoll/kit/http/raw-body'
import type { RawBody } from '@atoll/kit/http/raw-body'
import type { Target } from '../domain/route.ts'
import { endWithRequest, stayForTheRest } from './errors.ts'
import {
  hasBody,
  requestHeaders,
  requestTrailers,
  responseHeaders,
  responseTrailers,
} from './headers.ts'
import { portClosed, reach, reset } from './reach.ts'
import type { Pass } from './reach.ts'
import { createTap } from './tap.ts'

export async function passRequest(
  req: IncomingMessage,
  res: ServerResponse,
  pass: Pass,
): Promise<void> {
  const { target } = pass
  const client: Client = { req, res, target }
  const coding = req.headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    pass.refuse({ kind: 'unsupported', message: 'The only transfer coding spoken here is chunked' })
    return
  }
  const tap = target.isSecure ? undefined : createTap(() => fail())
  const reached = await reach(req.socket, pass, tap?.onread)
  if (!reached) return
  const { upstream, signal, release } = reached
  res.once('close', release)
  let isOver = false
  const fail = () => {
    if (isOver || signal.aborted) return
    isOver = true
    if (res.headersSent) reset(req.socket)
    else pass.refuse(portClosed(pass))
    upstream.destroy()
  }
  const outgoing = request({
    createConnection: () => upstream,
    method: req.method,
    path: target.path,
    headers: requestHeaders(req, target),
  })
  outgoing.on('error', fail)
  outgoing.once('upgrade', fail) // to a protocol that nobody asked for
  outgoing.on('information', (info) => {
    passInformation(info, client)
    tap?.expectHead()
  })
  outgoing.once('response', (incoming) => {
    if (!relayHead(incoming, client)) return fail()
    const end = () => {
      isOver = true
      endAnswer(incoming, client)
    }
    if (tap && hasBodyToPass(req, incoming)) tap.passBody(incoming, res, end)
    else {
      tap?.leave()
      incoming.pipe(res, { end: false })
    }
    incoming.on('error', fail)
    incoming.once('end', end)
  })
  sendBody(client, outgoing)
}

interface Client {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly target: Target
}

/** The answer of a server that declines to upgrade. */
export function relayResponse(incoming: IncomingMessage, client: Client, fail: () => void): void {
  incoming.on('error', fail)
  if (!relayHead(incoming, client)) return fail()
  incoming.once('end', () => endAnswer(incoming, client))
  incoming.pipe(client.res, { end: false })
}

/** False for what cannot be written: a status below 100, an odd reason phrase. */
function relayHead(incoming: IncomingMessage, { req, res, target }: Client): boolean {
  const { statusCode = 502, statusMessage = '' } = incoming
  stayForTheRest(req, res)
  try {
    res.writeHead(statusCode, statusMessage, responseHeaders(incoming, target))
    res.flushHeaders()
    return true
  } catch {
    return false
  }
}

/** Whether the parser waits for one, and for none that is coded in an unusual way. */
function hasBodyToPass({ method }: IncomingMessage, incoming: IncomingMessage): boolean {
  const { statusCode = 0, headers } = incoming
  if (method === 'HEAD' || statusCode === 204 || statusCode === 304) return false
  const coding = headers['transfer-encoding']
  return coding === undefined
    ? Number(headers['content-length'] ?? Infinity) > 0
    : coding.toLowerCase() === 'chunked'
}

function endAnswer(incoming: IncomingMessage, { req, res, target }: Client): void {
  addTrailers(responseTrailers(incoming, target), res)
  endWithRequest(req, res)
}

function sendBody({ req, res, target }: Client, outgoing: ClientRequest): void {
  req.on('error', () => {}) // the client left; its socket's close ends the pass
  if (!hasBody(req)) {
    outgoing.end()
    return
  }
  outgoing.flushHeaders()
  const taken = takeRawBody(req, res)
  if (taken) {
    sendPieces(taken, outgoing).catch(() => {}) // the client left, or has its answer: either ends the pass
    return
  }
  req.once('end', () => addTrailers(requestTrailers(req, target), outgoing))
  req.pipe(outgoing)
}

async function sendPieces({ pieces }: RawBody, outgoing: ClientRequest): Promise<void> {
  for await (const piece of pieces) {
    // Until it was sent, the memory must stay as it is.
    const error = await new Promise((resolve) => outgoing.write(piece, resolve))
    if (error) return
  }
  outgoing.end()
}

function addTrailers(trailers: [string, string][], to: ServerResponse | ClientRequest): void {
  if (trailers.length === 0) return
  try {
    to.addTrailers(trailers)
  } catch {
    // Not writable as HTTP: the message goes without them.
  }
}

/**
 * 100 is our server's own to send; of the others these two have a meaning to a client. On a shared host a browser would act on
 * early hints before it knows that the document is sandboxed.
 */
function passInformation(
  info: { readonly statusCode: number; readonly headers: NodeJS.Dict<string | string[]> },
  { res, target }: Client,
): void {
  if (res.headersSent) return
  try {
    if (info.statusCode === 102) res.writeProcessing()
    const { link } = info.headers
    if (info.statusCode !== 103 || link === undefined || target.isOnSharedHost) return
    res.writeEarlyHints({ link })
  } catch {
    // A hint that cannot be written as one is not needed.
  }
}
