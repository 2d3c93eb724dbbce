/**
 * Terminates connections that match a header rule: acts as the server towards the sandbox and sends each request anew
 * to the real server.
 *
 * Threats: all bytes come from a sandbox. The server name and the headers were decided before; nothing in the requests
 * can change them.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { resetConnection, setUnderlyingSocket } from './reset-connection.ts'
import { createTlsContexts } from './tls-contexts.ts'
import type { TlsContexts } from './tls-contexts.ts'
import { relayRequest } from './relay.ts'
import { createSession } from './session.ts'
import type { Upstream, Session } from './session.ts'
import { refuseConnect, relayUpgrade, shouldUpgrade } from './upgrade.ts'

export interface Terminator {
  /** Resolves when `socket` is closed. */
  terminate(socket: Socket, upstream: Upstream): Promise<void>
}

/** `halfCloseTimeoutMs` limits how long a connection may be idle after the client has ended its side. */
export function createTerminator(halfCloseTimeoutMs = 600_000): Terminator {
  const sessions = new WeakMap<Socket, Session>()
  const contexts = createTlsContexts()
  const server = createServer({
    shouldUpgradeCallback: shouldUpgrade,
    keepAliveTimeout: idleTimeoutMs,
    headersTimeout: headersTimeoutMs,
    requestTimeout: 0, // bodies may take hours
    connectionsCheckingInterval: headersTimeoutMs,
  })

  function withSession(req: IncomingMessage, handle: (session: Session) => void): void {
    const session = sessions.get(req.socket)
    try {
      if (session) handle(session)
      else resetConnection(req.socket)
    } catch {
      resetConnection(req.socket)
    }
  }

  const onRequest = (req: IncomingMessage, res: ServerResponse) =>
    withSession(req, (session) => {
      if (!session.enqueue(req, res, () => relayRequest(req, res, session)))
        resetConnection(req.socket)
    })
  // Lets a client end its side after the request and wait for the response. The type declarations lack this property.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('request', onRequest)
  server.on('checkContinue', onRequest)
  server.on('upgrade', (req, _socket, head) =>
    withSession(req, (session) => relayUpgrade(req, head, session)),
  )
  server.on('connect', (req) => withSession(req, (session) => refuseConnect(req, session)))
  // The server never listens, but starts to enforce its timeouts only after this event.
  server.emit('listening')

  return {
    async terminate(socket, upstream) {
      const closed = new Promise((resolve) => socket.once('close', resolve))
      const isSecure = upstream.transform.protocol === 'tls'
      const client = isSecure ? await acceptTls(socket, upstream, contexts) : socket
      if (socket.destroyed) return
      client.setKeepAlive(true, keepAliveMs)
      // A client that has closed its side may wait for a response or be gone.
      client.once('end', () => client.setTimeout(halfCloseTimeoutMs, () => resetConnection(client)))
      sessions.set(client, createSession(client, upstream))
      server.emit('connection', client)
      await closed
    },
  }
}

async function acceptTls(
  socket: Socket,
  { transform, ended }: Upstream,
  contexts: TlsContexts,
): Promise<TLSSocket> {
  const secured = new TLSSocket(socket, {
    isServer: true,
    secureContext: contexts(transform.authority, transform.name),
    ALPNProtocols: ['http/1.1', 'http/1.0'],
  })
  secured.on('error', () => {})
  setUnderlyingSocket(secured, socket)
  const signal = AbortSignal.any([ended, AbortSignal.timeout(handshakeTimeoutMs)])
  await once(secured, 'secure', { signal })
  return secured
}

const handshakeTimeoutMs = 10_000
/** Also the interval at which timeouts are checked. */
const headersTimeoutMs = 30_000
const idleTimeoutMs = 120_000
const keepAliveMs = 60_000
