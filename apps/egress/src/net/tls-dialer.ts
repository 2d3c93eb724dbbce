/** TLS connections to upstream servers. Servers must authenticate before they receive secrets. */
import { once } from 'node:events'
import { connect, createSecureContext, getCACertificates } from 'node:tls'
import type { SecureContext, TLSSocket } from 'node:tls'
import { UpstreamCertificateError } from '../domain/certificates/certificate-error.ts'
import type { Dialer, UpstreamConnection } from '../domain/route.ts'

/**
 * Wraps `dialer` and adds TLS where a header rule applies to a TLS connection. `certificates` (PEM) are CAs to trust in
 * addition to the built-in ones.
 */
export function createTlsDialer(dialer: Dialer, certificates: readonly string[]): Dialer {
  let trustStore: SecureContext | undefined
  return {
    async dial(route, destination, ended) {
      const upstream = await dialer.dial(route, destination, ended)
      if (route.transform?.protocol !== 'tls') return upstream
      try {
        trustStore ??= createTrustStore(certificates)
        const signal = AbortSignal.any([ended, AbortSignal.timeout(handshakeTimeoutMs)])
        const socket = await startTls(upstream, { name: route.transform.name, trustStore }, signal)
        return { socket, initialBytes: Buffer.alloc(0) }
      } catch (error) {
        upstream.socket.destroy()
        throw error
      }
    },
  }
}

/** Parses some hundred certificates, which takes tens of milliseconds, so the result is reused. */
function createTrustStore(certificates: readonly string[]): SecureContext {
  const builtIn = [...getCACertificates('bundled'), ...getCACertificates('system')]
  return createSecureContext({
    ca: [...new Set([...builtIn, ...certificates])],
    minVersion: 'TLSv1.2',
  })
}

async function startTls(
  { socket: plain, initialBytes }: UpstreamConnection,
  server: { readonly name: string; readonly trustStore: SecureContext },
  signal: AbortSignal,
): Promise<TLSSocket> {
  if (initialBytes.length > 0) plain.unshift(initialBytes)
  const socket = connect({
    socket: plain,
    servername: server.name,
    secureContext: server.trustStore,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
  })
  socket.on('error', () => {}) // permanent, as on the plain socket
  try {
    await once(socket, 'secureConnect', { signal })
    return socket
  } catch (error) {
    const { authorizationError } = socket
    socket.destroy()
    if (!authorizationError) throw error
    throw new UpstreamCertificateError(String(authorizationError), { cause: error })
  }
}

const handshakeTimeoutMs = 15_000
