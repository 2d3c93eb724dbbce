/** Listens for other parts of the fleet: HTTP/2 calls, and tunnels of edges to sandboxes, on one port with mutual TLS. */
import { createSecureServer, Http2ServerRequest } from 'node:http2'
import type { Http2SecureServer, Http2Session } from 'node:http2'
import { createServer, TLSSocket } from 'node:tls'
import type { Server } from 'node:tls'
import type { ContextValues, Interceptor } from '@connectrpc/connect'
import { Code, ConnectError, createContextKey, createContextValues } from '@connectrpc/connect'
import type { ConnectRouter } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { formatListenAddress } from '../../listen-address.ts'
import type { ListenAddress } from '../../listen-address.ts'
import type { Member } from '../identity/authority.ts'
import { memberOf } from '../identity/identity.ts'
import type { Identity, IdentityHolder } from '../identity/identity.ts'
import { checkProtocol } from './check-protocol.ts'
import { createWorkCount } from './work-count.ts'
import type { WorkCount } from './work-count.ts'

export const tunnelProtocol = 'atoll-tunnel/1'

export interface PeerListenerParts {
  readonly listen: ListenAddress
  readonly identity: IdentityHolder
  readonly log: Logger
  readonly routes: (router: ConnectRouter) => void
  /** Run after the checks of protocol and role. */
  readonly interceptors?: readonly Interceptor[]
  /** Whether a caller may call a method. Undefined caller: it has no certificate of the fleet. */
  readonly mayCall: (caller: Member | undefined, method: string) => boolean
  /** Whether the member was removed from the fleet. */
  readonly isRemoved: (member: Member) => boolean
  /** Methods that answer when something happens. `drain` does not wait for them. */
  readonly waits?: ReadonlySet<string>
  /** Absent: the part takes no tunnels. */
  readonly onTunnel?: (socket: TLSSocket, caller: Member) => void
}

export interface PeerListener {
  readonly address: ListenAddress
  /** Closes the connections of members that were removed. */
  dropRemoved(): void
  /**
   * Accepts no new connections and no new calls on open ones. Resolves when calls and tunnels have ended, or after the
   * limit. Streams of events do not count: they have no end.
   */
  drain(limitMs: number): Promise<void>
  close(): Promise<void>
}

const handshakeTimeout = 10_000
const maxConnections = 16_384
const windowBytes = 4 * 2 ** 20

export async function startPeerListener(parts: PeerListenerParts): Promise<PeerListener> {
  const { identity, listen } = parts
  const work = createWorkCount(parts.waits)
  const sessions = new Set<Http2Session>()
  const calls = createCallServer({ ...parts, work })
  calls.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  const server = createTlsServer(parts)
  const open = new Map<TLSSocket, Member | undefined>()
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {}) // `close` follows
    const caller = callerOf(socket)
    if (caller && parts.isRemoved(caller)) return socket.destroy()
    open.set(socket, caller)
    socket.once('close', () => open.delete(socket))
    if (socket.alpnProtocol === 'h2') return calls.emit('secureConnection', socket)
    if (socket.alpnProtocol !== tunnelProtocol || caller?.role !== 'edge') return socket.destroy()
    // A tunnel forwards a half-close. An HTTP/2 session would leak with it.
    socket.allowHalfOpen = true
    socket.once('close', work.begin())
    return parts.onTunnel?.(socket, caller)
  })
  const stopRenewing = identity.onChange((renewed) => server.setSecureContext(toSecrets(renewed)))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(cannotListen(error, listen)))
    server.listen(listen, resolve)
  })
  const bound = server.address()
  return {
    address: {
      host: listen.host,
      port: bound !== null && typeof bound === 'object' ? bound.port : listen.port,
    },
    dropRemoved() {
      for (const [socket, caller] of open) if (caller && parts.isRemoved(caller)) socket.destroy()
    },
    async drain(limitMs) {
      server.close()
      for (const session of sessions) session.close()
      await work.ended(limitMs)
    },
    async close() {
      stopRenewing()
      // Resolves also if it does not listen any more.
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of open.keys()) socket.destroy()
      await closed
    },
  }
}

/** Serves calls on connections that the TLS server has accepted. */
function createCallServer(
  parts: PeerListenerParts & { readonly work: WorkCount },
): Http2SecureServer {
  const { identity, log } = parts
  const calls = createSecureServer(
    { ...toSecrets(identity.current()), settings: { initialWindowSize: windowBytes } },
    connectNodeAdapter({
      routes: parts.routes,
      contextValues: callerValues,
      interceptors: [
        checkProtocol,
        checkCaller(parts),
        parts.work.count,
        ...(parts.interceptors ?? []),
      ],
      grpc: false,
      grpcWeb: false,
      acceptCompression: [],
    }),
  )
  calls.on('sessionError', (error) => log.debug({ err: error, event: 'fleet.session' }))
  return calls
}

function createTlsServer({ identity, log, onTunnel }: PeerListenerParts): Server {
  const server = createServer({
    ...toSecrets(identity.current()),
    requestCert: true,
    // A caller without a certificate may join, and nothing else.
    rejectUnauthorized: false,
    ALPNProtocols: onTunnel ? ['h2', tunnelProtocol] : ['h2'],
    minVersion: 'TLSv1.3',
    handshakeTimeout,
  })
  server.maxConnections = maxConnections
  server.on('tlsClientError', (error) => log.debug({ err: error, event: 'fleet.handshake' }))
  return server
}

/** Sends the authority with the certificate: a part that joins compares it with its token. */
function toSecrets({ certificate, key, authority }: Identity) {
  return { cert: `${certificate}${authority}`, key, ca: authority }
}

const callerKey = createContextKey<Member | undefined>(undefined)
const callers = new WeakMap<Http2Session, Member | undefined>()

function callerValues(request: unknown): ContextValues {
  const session = request instanceof Http2ServerRequest ? request.stream.session : undefined
  return createContextValues().set(callerKey, session && callerOfSession(session))
}

function callerOfSession(session: Http2Session): Member | undefined {
  const { socket } = session
  if (!callers.has(session))
    callers.set(session, socket instanceof TLSSocket ? callerOf(socket) : undefined)
  return callers.get(session)
}

/** Returns the caller of a method that `mayCall` allows to members only. */
export function requireCaller(values: ContextValues): Member {
  const caller = values.get(callerKey)
  if (caller) return caller
  throw new ConnectError('the caller has no certificate of the fleet', Code.Unauthenticated)
}

function callerOf(socket: TLSSocket): Member | undefined {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined
  return certificate && memberOf(certificate)
}

function checkCaller({ mayCall, isRemoved, log }: PeerListenerParts): Interceptor {
  return (next) => (request) => {
    const caller = request.contextValues.get(callerKey)
    const { name } = request.method
    if (mayCall(caller, name) && !(caller && isRemoved(caller))) return next(request)
    log.warn({ event: 'fleet.refused', caller, method: name }, 'a peer may not call this method')
    throw caller
      ? new ConnectError(`${caller.role} ${caller.id} may not call ${name}`, Code.PermissionDenied)
      : new ConnectError(`${name} needs a certificate of the fleet`, Code.Unauthenticated)
  }
}

function cannotListen(error: NodeJS.ErrnoException, address: ListenAddress): Fault {
  const message = `Cannot listen for the fleet on ${formatListenAddress(address)} (${error.code}): choose another address with ATOLL_FLEET_LISTEN`
  return new Fault('conflict', 'cannot_listen', message, { cause: error })
}
