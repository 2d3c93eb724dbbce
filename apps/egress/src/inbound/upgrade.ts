/**
 * Forwards WebSockets and other protocols that start with an HTTP/1.1 upgrade.
 *
 * Threats: as in relay.ts until the server accepts the upgrade. From then on the bytes are opaque, and neither
 * connection is used for HTTP again, so none of them can be taken for a request.
 */
import { ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { hasBody, responseHeaders, upgradeHeaders } from '../domain/http/forwarded-headers.ts'
import { findRefusal } from '../domain/http/forwarded-request.ts'
import { resetConnection } from './reset-connection.ts'
import { pipeBothWays } from './pipe-both-ways.ts'
import { refuse, upstreamFailure } from './refuse.ts'
import { createUpstreamRequest, relayResponse } from './relay.ts'
import type { Session } from './session.ts'

/**
 * Callback for `shouldUpgradeCallback` of node:http. Offers of h2c and upgrades with a body are handled as plain
 * requests, which RFC 9110, 7.8 allows.
 */
export function shouldUpgrade(req: IncomingMessage): boolean {
  const protocols = (req.headers.upgrade ?? '').toLowerCase().split(/[\s,]+/)
  return !protocols.includes('h2c') && !hasBody(req)
}

/** node:http has already detached from the socket of `req`. */
export function relayUpgrade(req: IncomingMessage, head: Buffer, session: Session): void {
  if (!session.isIdle()) return resetConnection(req.socket) // an earlier response is still being sent
  const res = createResponse(req)
  session.enqueue(req, res, () => startUpgrade({ req, res, head, session }))
}

function startUpgrade({ req, res, head, session }: Upgrade): void {
  const { socket } = req
  const { name, headers } = session.transform
  const refusal = findRefusal(req, name)
  if (refusal) return refuse(req, res, refusal)
  const protocol = req.headers.upgrade ?? ''
  const outgoing = createUpstreamRequest(req, session, upgradeHeaders(req, headers, protocol))
  if (!outgoing) return refuse(req, res, upstreamFailure(undefined, name))

  // A disconnect is visible only while the socket is read, and no other code reads it until the server responds.
  const onClientEnd = () => resetConnection(socket)
  socket.once('end', onClientEnd)
  socket.read(0)

  let isSettled = false
  const fail = (error?: unknown) => {
    if (isSettled) return
    isSettled = true
    outgoing.destroy()
    if (res.headersSent || outgoing.reusedSocket) resetConnection(socket)
    else refuse(req, res, upstreamFailure(error, name))
  }
  outgoing.on('error', fail)
  outgoing.once('response', (incoming) => {
    relayResponse(incoming, res, fail)
    incoming.once('end', () => (isSettled = true))
  })
  outgoing.once('upgrade', (incoming, tunnel, initialBytes) => {
    isSettled = true
    socket.off('end', onClientEnd)
    if (!sendSwitchingProtocols(incoming, res)) {
      tunnel.destroy()
      return resetConnection(socket)
    }
    tunnel.allowHalfOpen = true
    if (head.length > 0) socket.unshift(head)
    void pipeBothWays(socket, { socket: tunnel, initialBytes }).catch(() => {})
  })
  outgoing.end()
}

interface Upgrade {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Bytes that followed the request. */
  readonly head: Buffer
  readonly session: Session
}

/** Refuses a CONNECT request. node:http has already detached from its socket. */
export function refuseConnect(req: IncomingMessage, session: Session): void {
  const refusal = findRefusal(req, session.transform.name)
  if (!session.isIdle() || !refusal) return resetConnection(req.socket)
  refuse(req, createResponse(req), refusal)
}

/** Creates a response that closes the connection when it is sent, unless its status is 101. */
function createResponse(req: IncomingMessage): ServerResponse {
  const { socket } = req
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket)
  res.once('finish', () => {
    res.detachSocket(socket)
    if (res.statusCode !== 101) socket.destroySoon()
  })
  return res
}

/** Returns false if the response cannot be written. */
function sendSwitchingProtocols(incoming: IncomingMessage, res: ServerResponse): boolean {
  const { statusMessage = '', headers } = incoming
  try {
    res.sendDate = false
    res.writeHead(101, statusMessage, [
      ...responseHeaders(incoming),
      ...['Connection', 'Upgrade', 'Upgrade', headers.upgrade ?? ''],
    ])
    res.end()
    return true
  } catch {
    return false
  }
}
