/**
 * Connections to servers of which secrets are told: they have to prove their name first.
 */
import { once } from 'node:events'
import { connect, createSecureContext, getCACertificates } from 'node:tls'
import type { SecureContext, TLSSocket } from 'node:tls'
import { UntrustedServer } from '../domain/untrusted-server.ts'
import type { Dialer, Outside } from '../domain/way.ts'

/** As `dialer`, with TLS where a transform is for it. `certificates` (PEM) are of authorities beyond the known ones. */
export function createSecureDialer(dialer: Dialer, certificates: readonly string[]): Dialer {
  let trust: SecureContext | undefined
  return {
    async dial(way, target, ended) {
      const outside = await dialer.dial(way, target, ended)
      if (way.transform?.protocol !== 'tls') return outside
      try {
        trust ??= createTrust(certificates)
        const signal = AbortSignal.any([ended, AbortSignal.timeout(handshakeLimitMs)])
        const socket = await secure(outside, { name: way.transform.name, trust }, signal)
        return { socket, first: Buffer.alloc(0) }
      } catch (error) {
        outside.socket.destroy()
        throw error
      }
    },
  }
}

/** Some hundred certificates are parsed, which takes tens of milliseconds: not again for each connection. */
function createTrust(certificates: readonly string[]): SecureContext {
  const known = [...getCACertificates('bundled'), ...getCACertificates('system')]
  return createSecureContext({
    ca: [...new Set([...known, ...certificates])],
    minVersion: 'TLSv1.2',
  })
}

async function secure(
  { socket: plain, first }: Outside,
  server: { readonly name: string; readonly trust: SecureContext },
  signal: AbortSignal,
): Promise<TLSSocket> {
  if (first.length > 0) plain.unshift(first)
  const socket = connect({
    socket: plain,
    servername: server.name,
    secureContext: server.trust,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
  })
  socket.on('error', () => {}) // as that of the plain one
  try {
    await once(socket, 'secureConnect', { signal })
    return socket
  } catch (error) {
    const { authorizationError } = socket
    socket.destroy()
    if (!authorizationError) throw error
    throw new UntrustedServer(String(authorizationError), { cause: error })
  }
}

const handshakeLimitMs = 15_000
