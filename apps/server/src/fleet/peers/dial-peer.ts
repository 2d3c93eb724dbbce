import { connect, createSecureContext } from 'node:tls'
import type { ConnectionOptions, SecureContext, TLSSocket } from 'node:tls'
import type { Role } from '@atoll/contracts/fleet'
import type { ListenAddress } from '../../listen-address.ts'
import { memberOf } from '../identity/identity.ts'
import type { Identity } from '../identity/identity.ts'

export interface ExpectedPeer {
  readonly role: Role
  /** Absent: any member with the role. */
  readonly id?: string | undefined
}

export type DialIdentity = Pick<Identity, 'authority'> | Identity

export interface DialPeer {
  readonly address: ListenAddress
  /** A part that joins has no certificate yet. */
  readonly identity: DialIdentity
  readonly expected: ExpectedPeer
  readonly protocol: string
  readonly signal: AbortSignal
  /** TLS session of an earlier connection to the same peer, which saves a full handshake. */
  readonly session?: Buffer | undefined
}

/** Connects with mutual TLS. The peer is checked by role and ID in its certificate, not by host name: addresses move. */
export function dialPeer(options: DialPeer): Promise<TLSSocket> {
  const { address, identity, expected, protocol, signal, session } = options
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(toError(signal.reason))
    const settings: ConnectionOptions & { readonly allowHalfOpen: boolean } = {
      ...address,
      secureContext: contextOf(identity),
      ALPNProtocols: [protocol],
      // A tunnel forwards a half-close.
      allowHalfOpen: protocol !== 'h2',
      ...(session && { session }),
      checkServerIdentity: () => undefined,
    }
    const socket = connect(settings)
    const fail = (error: Error) => {
      signal.removeEventListener('abort', abort)
      socket.destroy()
      reject(error)
    }
    const abort = () => fail(toError(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
    // Never removed: without a listener a late error, such as EHOSTUNREACH, would become an uncaught exception.
    socket.on('error', fail)
    socket.once('close', () => fail(new Error('the peer closed the connection')))
    socket.once('secureConnect', () => {
      const objection = findObjection(socket, expected, protocol)
      if (objection !== undefined) return fail(new Error(objection))
      signal.removeEventListener('abort', abort)
      socket.setNoDelay(true)
      socket.setKeepAlive(true, 20_000)
      resolve(socket)
    })
  })
}

/** One context for all connections: a context of its own for each would parse the key and take memory again. */
const contexts = new WeakMap<DialIdentity, SecureContext>()

function contextOf(identity: DialIdentity): SecureContext {
  const known = contexts.get(identity)
  if (known) return known
  const made = createSecureContext({
    ca: identity.authority,
    ...('key' in identity && { cert: identity.certificate, key: identity.key }),
    minVersion: 'TLSv1.3',
  })
  contexts.set(identity, made)
  return made
}

function findObjection(
  socket: TLSSocket,
  { role, id }: ExpectedPeer,
  protocol: string,
): string | undefined {
  const certificate = socket.getPeerX509Certificate()
  const peer = certificate && memberOf(certificate)
  const wanted = id === undefined ? `a member with the role ${role}` : `${role} ${id}`
  if (!peer || peer.role !== role || (id !== undefined && peer.id !== id)) {
    const found = peer ? `${peer.role} ${peer.id}` : 'a certificate without a role'
    return `expected ${wanted} at this address, and found ${found}`
  }
  return socket.alpnProtocol === protocol ? undefined : `the peer does not speak ${protocol}`
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}
