import { createServer } from 'node:http'
import type { RequestListener, Server, ServerOptions } from 'node:http'
import { Server as NetServer } from 'node:net'
import { createServer as createTlsServer } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { explainClientErrors } from './client-error.ts'
import type { Connections } from './connections.ts'
import { formatListenAddress } from './listen-address.ts'
import type { ListenAddress } from './listen-address.ts'
import type { Certificates } from './tls/certificates.ts'
import { linkSockets } from './tls/link-sockets.ts'

export interface Listener {
  readonly server: Server
  /** Bound address, with the actual port. */
  readonly address: ListenAddress
  /** Accepts no new connections and closes idle ones. */
  stop(): void
  /**
   * Accepts no new connections, and ends open ones after their next response. Resolves when all have ended, or after the
   * limit.
   */
  drain(limitMs: number): Promise<void>
  /** Resolves after `stop`, once all connections have ended. */
  readonly closed: Promise<void>
}

/** Connections that the kernel queues until the server accepts them. In a flood, new clients wait behind this many. */
const backlog = 1_024

export interface ListenerPlace {
  /** Environment variable that sets the address, named in error messages. */
  readonly setting: string
  readonly address: ListenAddress
}

/** Idle connections stay usable for this long while the server drains. */
const idleMs = 5_000
const closeIdleMs = 200

/** Time for a TLS handshake. The time for a request head begins after it. */
const handshakeTimeout = 30_000

export interface ListenerParts {
  readonly connections: Connections
  readonly handle: RequestListener
  /** Absent: the listener speaks plain HTTP. */
  readonly certificates?: Certificates | undefined
}

export async function startListener(
  given: ListenerPlace,
  options: ServerOptions,
  parts: ListenerParts,
): Promise<Listener> {
  const { connections, handle } = parts
  const server = openServer(options, parts)
  explainClientErrors(server)
  let isDraining = false
  server.on('request', (req, res) => {
    if (isDraining) res.shouldKeepAlive = false
    connections.begin(req.socket, res)
    handle(req, res)
  })
  server.on('upgrade', (req) => connections.upgrade(req.socket))
  const { host, port } = given.address
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(toFault(error, given)))
    server.listen({ host, port, backlog }, resolve)
  })
  const bound = server.address()
  const taken = bound !== null && typeof bound === 'object' ? bound.port : port
  const closed = Promise.withResolvers<void>()
  server.once('close', closed.resolve)
  return {
    server,
    address: { host, port: taken },
    closed: closed.promise,
    stop() {
      if (server.listening) server.close()
    },
    async drain(limitMs) {
      isDraining = true
      // The method of node:http would also close idle connections, on which a client may be sending a request.
      if (server.listening) NetServer.prototype.close.call(server)
      const closeIdle = () => setInterval(() => server.closeIdleConnections(), closeIdleMs)
      const limit = new AbortController()
      const idle = sleep(idleMs, undefined, { signal: limit.signal }).then(closeIdle)
      const timeout = sleep(limitMs, undefined, { signal: limit.signal })
      await Promise.race([closed.promise, timeout])
      limit.abort()
      await Promise.allSettled([timeout])
      clearInterval(await idle.catch(() => undefined))
    },
  }
}

function openServer(options: ServerOptions, { connections, certificates }: ListenerParts): Server {
  if (!certificates) {
    return createServer(options).on('connection', (socket) => connections.add(socket))
  }
  const { cert, key } = certificates.current()
  const server = createTlsServer({ handshakeTimeout, ...options, cert, key })
  certificates.onChange((changed) => server.setSecureContext(changed))
  linkSockets(server, connections)
  return server
}

function toFault(error: NodeJS.ErrnoException, { setting, address }: ListenerPlace): unknown {
  const place = formatListenAddress(address)
  const other = formatListenAddress({ ...address, port: (address.port % 65_535) + 1 })
  const advice = `choose another address with ${setting}, for example ${setting}=${other}`
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `${place} is in use by another program. End that program, or ${advice}`,
    EADDRNOTAVAIL: `${place} is not an address of this machine: ${advice}`,
    ENOTFOUND: `${address.host} is not a name that this machine knows: ${advice}`,
    EACCES: `This user may not listen on ${place}: ${advice}`,
  }
  const message = reasons[error.code ?? '']
  return message ? new Fault('conflict', 'cannot_listen', message, { cause: error }) : error
}
