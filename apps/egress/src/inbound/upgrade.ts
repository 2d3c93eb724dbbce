/**
 * Passes a WebSocket, or any other protocol that starts as an HTTP/1.1 upgrade.
 *
 * Threats: as in relay.ts until the server agrees to the upgrade; from then on the bytes are opaque, and neither
 * connection is used for HTTP again, so nothing in them can be taken for a request.
 */
import { ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { hasBody, responseHeaders, upgradeHeaders } from '../domain/forwarded-headers.ts'
import { objectionTo } from '../domain/forwarded-request.ts'
import { cut } from './cut.ts'
import { join } from './join.ts'
import { refuse, unreachable } from './refuse.ts'
import { ask, relayResponse } from './relay.ts'
import type { Session } from './session.ts'

/**
 * For `shouldUpgradeCallback` of node:http. What is not upgraded is handled as a plain request, which a server may do
 * (RFC 9110, 7.8): offers of HTTP/2 in clear text, and upgrades that come with a body.
 */
export function shouldUpgrade(req: IncomingMessage): boolean {
  const protocols = (req.headers.upgrade ?? '').toLowerCase().split(/[\s,]+/)
  return !protocols.includes('h2c') && !hasBody(req)
}

/** For a request after which node:http has let go of the connection. */
export function relayUpgrade(req: IncomingMessage, head: Buffer, session: Session): void {
  if (!session.isIdle()) return cut(req.socket) // an answer is still on its way
  const res = responseOn(req)
  session.begin(req, res, () => begin({ req, res, head, session }))
}

function begin({ req, res, head, session }: Upgrade): void {
  const { socket } = req
  const { name, headers } = session.transform
  const objection = objectionTo(req, name)
  if (objection) return refuse(req, res, objection)
  const protocol = req.headers.upgrade ?? ''
  const outgoing = ask(req, session, upgradeHeaders(req, headers, protocol))
  if (!outgoing) return refuse(req, res, unreachable(undefined, name))

  // Nobody else reads it until the server has answered, and that it has left is only seen by who does.
  const leave = () => cut(socket)
  socket.once('end', leave)
  socket.read(0)

  let isOver = false
  const fail = (error?: unknown) => {
    if (isOver) return
    isOver = true
    outgoing.destroy()
    if (res.headersSent || outgoing.reusedSocket) cut(socket)
    else refuse(req, res, unreachable(error, name))
  }
  outgoing.on('error', fail)
  outgoing.once('response', (incoming) => {
    relayResponse(incoming, res, fail)
    incoming.once('end', () => (isOver = true))
  })
  outgoing.once('upgrade', (incoming, tunnel, first) => {
    isOver = true
    socket.off('end', leave)
    if (!agree(incoming, res)) {
      tunnel.destroy()
      return cut(socket)
    }
    tunnel.allowHalfOpen = true
    if (head.length > 0) socket.unshift(head)
    void join(socket, { socket: tunnel, first }).catch(() => {})
  })
  outgoing.end()
}

interface Upgrade {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** What came after the request. */
  readonly head: Buffer
  readonly session: Session
}

/** For CONNECT, after which node:http has let go of the connection too. */
export function refuseConnect(req: IncomingMessage, session: Session): void {
  const objection = objectionTo(req, session.transform.name)
  if (!session.isIdle() || !objection) return cut(req.socket)
  refuse(req, responseOn(req), objection)
}

/** It closes the connection when it is out, unless it is one to go on in another protocol. */
function responseOn(req: IncomingMessage): ServerResponse {
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

/** False for what cannot be written. */
function agree(incoming: IncomingMessage, res: ServerResponse): boolean {
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
