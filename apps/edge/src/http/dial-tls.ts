import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'

const handshakeTimeoutMs = 30_000

/**
 * Dials a program that serves TLS. Its certificate is not verified: the connection uses the virtual network
 * link of that sandbox, which no other party can intercept.
 */
export async function dialTls(
  dialPlain: () => Promise<Socket | undefined>,
  options: { readonly authority: string; readonly signal: AbortSignal },
): Promise<Socket | undefined> {
  const { authority, signal } = options
  const plain = await dialPlain()
  if (!plain || signal.aborted) return plain
  return new Promise((resolve) => {
    const socket = connect({
      socket: plain,
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      ...serverNameOption(authority),
    })
    const giveUp = () => {
      socket.destroy()
      settle(undefined)
    }
    const settle = (result: Socket | undefined) => {
      signal.removeEventListener('abort', giveUp)
      clearTimeout(timer)
      resolve(result)
    }
    const timer = setTimeout(giveUp, handshakeTimeoutMs)
    // Never removed, like the error listener of the plain socket.
    socket.on('error', giveUp)
    socket.once('close', giveUp)
    socket.once('secureConnect', () => settle(socket))
    signal.addEventListener('abort', giveUp, { once: true })
  })
}

/** Servers select a certificate by this name, which must not be an IP address (RFC 6066, 3). */
function serverNameOption(authority: string): { readonly servername?: string } {
  const servername = authority.replace(/:\d*$/, '')
  return servername === '' || /[[\]]/.test(servername) || isIP(servername) !== 0
    ? {}
    : { servername }
}
