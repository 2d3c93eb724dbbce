/**
 * Proxies WebSockets and other protocols that start with an HTTP/1.1 upgrade.
 *
 * Threats: the same as in proxy.ts until the sandbox accepts the upgrade. From then on the bytes are opaque, and the
 * connection is never used for HTTP again, so no byte can be read as a request.
 */
import { request, ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Target } from '../domain/route.ts'
import { linger } from './error-response.ts'
import { hasBody, responseHeaders, upgradeHeaders } from './headers.ts'
import { relayResponse } from './proxy.ts'
import { portClosed, connectToSandbox, reset } from './sandbox-connection.ts'
import type { ProxyContext } from './sandbox-connection.ts'

/**
 * Used as `shouldUpgradeCallback` of node:http. Offers of cleartext HTTP/2 and upgrades with a body are handled as plain
 * requests, as RFC 9110, 7.8 allows.
 */
export function shouldUpgrade(req: IncomingMessage): boolean {
  const protocols = (req.headers.upgrade ?? '').toLowerCase().split(/[\s,]+/)
  return !protocols.includes('h2c') && !hasBody(req)
}

/** Creates a response on a socket that node:http has released. The socket closes after the response. */
export function responseOn(socket: Duplex, req: IncomingMessage): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  // The socket is always a net.Socket, although the event declares a Duplex.
  res.assignSocket(req.socket)
  res.once('finish', () => {
    res.detachSocket(req.socket)
    socket.end()
    linger(socket, () => socket.destroy())
  })
  return res
}

export async function proxyUpgrade(
  req: IncomingMessage,
  client: { readonly socket: Duplex; readonly head: Buffer },
  context: ProxyContext,
): Promise<void> {
  const { target } = context
  const { socket } = client
  const connection = await connectToSandbox(socket, context)
  if (!connection) return
  const { upstream, signal } = connection
  let answered = false
  let failed = false
  const fail = () => {
    if (failed || signal.aborted) return
    failed = true
    if (answered) reset(socket)
    else context.refuse(portClosed(context))
    upstream.destroy()
  }
  const outgoing = request({
    createConnection: () => upstream,
    method: req.method,
    path: target.path,
    headers: upgradeHeaders(req, target, context.origin),
  })
  outgoing.on('error', fail)
  outgoing.once('response', (incoming) => {
    answered = true
    relayResponse(incoming, { req, res: responseOn(socket, req), target }, fail)
  })
  outgoing.once('upgrade', (incoming, tunnel, head) => {
    answered = true
    socket.write(switchingResponse(incoming, target), 'latin1')
    tunnelBytes({ socket, head: client.head }, { socket: tunnel, head })
  })
  outgoing.end()
}

interface TunnelEnd<Stream> {
  readonly socket: Stream
  /** Bytes that arrived with the handshake. */
  readonly head: Buffer
}

function tunnelBytes(client: TunnelEnd<Duplex>, sandbox: TunnelEnd<Socket>): void {
  if (sandbox.head.length > 0) client.socket.write(sandbox.head)
  if (client.head.length > 0) sandbox.socket.write(client.head)
  client.socket.pipe(sandbox.socket)
  sandbox.socket.pipe(client.socket)
  sandbox.socket.once('close', (hadError) => {
    if (hadError || !client.socket.writableEnded) reset(client.socket)
  })
}

function switchingResponse(incoming: IncomingMessage, target: Target): string {
  const raw = responseHeaders(incoming, target)
  let text = `HTTP/1.1 101 Switching Protocols\r\n`
  for (let at = 0; at + 1 < raw.length; at += 2) text += `${raw[at]}: ${raw[at + 1]}\r\n`
  return `${text}Connection: Upgrade\r\nUpgrade: ${incoming.headers.upgrade ?? ''}\r\n\r\n`
}
