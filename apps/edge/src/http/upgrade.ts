/**
 * Passes a WebSocket, or any other protocol that starts as an HTTP/1.1 upgrade.
 *
 * Threats: as in proxy.ts until the sandbox agrees to the upgrade; from then on the bytes are opaque, and the
 * connection is never used for HTTP again, so nothing in them can be taken for a request.
 */
import { request, ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Target } from '../domain/route.ts'
import { linger } from './errors.ts'
import { hasBody, responseHeaders, upgradeHeaders } from './headers.ts'
import { relayResponse } from './proxy.ts'
import { portClosed, reach, reset } from './reach.ts'
import type { Pass } from './reach.ts'

/**
 * For `shouldUpgradeCallback` of node:http. What is not upgraded is handled as a plain request, which a server
 * may do (RFC 9110, 7.8): offers of HTTP/2 in clear text, and upgrades that come with a body.
 */
export function shouldUpgrade(req: IncomingMessage): boolean {
  const protocols = (req.headers.upgrade ?? '').toLowerCase().split(/[\s,]+/)
  return !protocols.includes('h2c') && !hasBody(req)
}

/** A response on a connection that node:http has already let go of. It closes when the answer is out. */
export function responseOn(socket: Duplex, req: IncomingMessage): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  // The socket is one of node:net, whatever stream type the event declares.
  res.assignSocket(req.socket)
  res.once('finish', () => {
    res.detachSocket(req.socket)
    socket.end()
    linger(socket, () => socket.destroy())
  })
  return res
}

export async function passUpgrade(
  req: IncomingMessage,
  client: { readonly socket: Duplex; readonly head: Buffer },
  pass: Pass,
): Promise<void> {
  const { target } = pass
  const { socket } = client
  const reached = await reach(socket, pass)
  if (!reached) return
  const { upstream, signal } = reached
  let answered = false
  let failed = false
  const fail = () => {
    if (failed || signal.aborted) return
    failed = true
    if (answered) reset(socket)
    else pass.refuse(portClosed(pass))
    upstream.destroy()
  }
  const outgoing = request({
    createConnection: () => upstream,
    method: req.method,
    path: target.path,
    headers: upgradeHeaders(req, target),
  })
  outgoing.on('error', fail)
  outgoing.once('response', (incoming) => {
    answered = true
    relayResponse(incoming, { req, res: responseOn(socket, req), target }, fail)
  })
  outgoing.once('upgrade', (incoming, tunnel, head) => {
    answered = true
    socket.write(switching(incoming, target), 'latin1')
    join({ socket, head: client.head }, { socket: tunnel, head })
  })
  outgoing.end()
}

interface Side<Stream> {
  readonly socket: Stream
  /** What arrived together with the handshake. */
  readonly head: Buffer
}

function join(client: Side<Duplex>, sandbox: Side<Socket>): void {
  if (sandbox.head.length > 0) client.socket.write(sandbox.head)
  if (client.head.length > 0) sandbox.socket.write(client.head)
  client.socket.pipe(sandbox.socket)
  sandbox.socket.pipe(client.socket)
  sandbox.socket.once('close', (hadError) => {
    if (hadError || !client.socket.writableEnded) reset(client.socket)
  })
}

function switching(incoming: IncomingMessage, target: Target): string {
  const raw = responseHeaders(incoming, target)
  let text = `HTTP/1.1 101 Switching Protocols\r\n`
  for (let at = 0; at + 1 < raw.length; at += 2) text += `${raw[at]}: ${raw[at + 1]}\r\n`
  return `${text}Connection: Upgrade\r\nUpgrade: ${incoming.headers.upgrade ?? ''}\r\n\r\n`
}
