/**
 * Proxies one HTTP request to a sandbox and its response back, both as streams.
 *
 * Threats: both ends are hostile. node:http parses and rewrites their messages; only bodies are copied, up to the length
 * that their heads announced. A throw inside an event handler would end the process, so each handler of their input
 * catches. Every upstream connection serves one request, so it never reaches a later owner of the address.
 */
import { request } from 'node:http'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { takeRawBody } from '@atoll/kit/http/raw-body'
import type { RawBody } from '@atoll/kit/http/raw-body'
import type { Target } from '../domain/route.ts'
import { endResponse, keepConnectionOpen } from './error-response.ts'
import {
  hasBody,
  requestHeaders,
  requestTrailers,
  responseHeaders,
  responseTrailers,
} from './headers.ts'
import { portClosed, connectToSandbox, reset } from './sandbox-connection.ts'
import type { ProxyContext } from './sandbox-connection.ts'
import { createBodyTap } from './body-tap.ts'

export async function proxyRequest(
  req: IncomingMessage,
  res: ServerResponse,
  context: ProxyContext,
): Promise<void> {
  const { target } = context
  const client: Client = { req, res, target }
  const coding = req.headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    context.refuse({
      kind: 'unsupported',
      message: 'Unsupported transfer coding: only chunked is supported',
    })
    return
  }
  const isPlain = !target.usesTls && context.sandbox.dial === undefined
  const tap = isPlain ? createBodyTap(() => fail()) : undefined
  const connection = await connectToSandbox(req.socket, context, tap?.onread)
  if (!connection) return
  const { upstream, signal, release } = connection
  res.once('close', release)
  let isOver = false
  const fail = () => {
    if (isOver || signal.aborted) return
    isOver = true
    if (res.headersSent) reset(req.socket)
    else context.refuse(portClosed(context))
    upstream.destroy()
  }
  const outgoing = request({
    createConnection: () => upstream,
    method: req.method,
    path: target.path,
    headers: requestHeaders(req, target, context.origin),
  })
  outgoing.on('error', fail)
  outgoing.once('upgrade', fail) // unrequested upgrade
  outgoing.on('information', (info) => {
    forwardInformation(info, client)
    tap?.expectHead()
  })
  outgoing.once('response', (incoming) => {
    if (!relayHead(incoming, client)) return fail()
    const end = () => {
      isOver = true
      endAnswer(incoming, client)
    }
    if (tap && hasBodyToForward(req, incoming)) tap.forwardBody(incoming, res, end)
    else {
      tap?.detach()
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

/** Relays the response of a server that declines to upgrade. */
export function relayResponse(incoming: IncomingMessage, client: Client, fail: () => void): void {
  incoming.on('error', fail)
  if (!relayHead(incoming, client)) return fail()
  incoming.once('end', () => endAnswer(incoming, client))
  incoming.pipe(client.res, { end: false })
}

/** Returns false if node:http cannot write the head: a status below 100, an invalid reason phrase. */
function relayHead(incoming: IncomingMessage, { req, res, target }: Client): boolean {
  const { statusCode = 502, statusMessage = '' } = incoming
  keepConnectionOpen(req, res)
  try {
    res.writeHead(statusCode, statusMessage, responseHeaders(incoming, target))
    res.flushHeaders()
    return true
  } catch {
    return false
  }
}

/** True if the parser expects a body that is chunked or not encoded. */
function hasBodyToForward({ method }: IncomingMessage, incoming: IncomingMessage): boolean {
  const { statusCode = 0, headers } = incoming
  if (method === 'HEAD' || statusCode === 204 || statusCode === 304) return false
  const coding = headers['transfer-encoding']
  return coding === undefined
    ? Number(headers['content-length'] ?? Infinity) > 0
    : coding.toLowerCase() === 'chunked'
}

function endAnswer(incoming: IncomingMessage, { req, res, target }: Client): void {
  addTrailers(responseTrailers(incoming, target), res)
  endResponse(req, res)
}

function sendBody({ req, res, target }: Client, outgoing: ClientRequest): void {
  req.on('error', () => {}) // the client disconnected: `close` of its socket ends the request
  if (!hasBody(req)) {
    outgoing.end()
    return
  }
  outgoing.flushHeaders()
  const taken = takeRawBody(req, res)
  if (taken) {
    sendChunks(taken, outgoing).catch(() => {}) // the client disconnected or has its response; both end the request
    return
  }
  req.once('end', () => addTrailers(requestTrailers(req, target), outgoing))
  req.pipe(outgoing)
}

async function sendChunks({ pieces }: RawBody, outgoing: ClientRequest): Promise<void> {
  for await (const piece of pieces) {
    // The buffer is reused after the write.
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
    // Invalid trailers are dropped.
  }
}

/**
 * Forwards 102 and 103; our server itself sends 100. On a shared host early hints are dropped: a browser would act on
 * them before it knows that the document is sandboxed.
 */
function forwardInformation(
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
    // Invalid hints are dropped.
  }
}
