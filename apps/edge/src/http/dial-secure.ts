import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { dial } from './dial.ts'

const handshakeTimeoutMs = 30_000

/**
 * As `dial`, to a program that speaks TLS itself. Its certificate is not verified: the way leads over a cable of the node
 * to that sandbox alone, and nobody else can be at its end.
 */
export async function dialSecure(
  address: string,
  port: number,
  options: { readonly authority: string; readonly signal: AbortSignal },
): Promise<Socket | undefined> {
  const { authority, signal } = options
  const plain = await dial(address, port, { signal })
  if (!plain || signal.aborted) return plain
  return new Promise((resolve) => {
    const socket = connect({
      socket: plain,
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      ...namedIn(authority),
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
    // Stays for good, as that of the plain one.
    socket.on('error', giveUp)
    socket.once('close', giveUp)
    socket.once('secureConnect', () => settle(socket))
    signal.addEventListener('abort', giveUp, { once: true })
  })
}

/** Servers may choose their certificate by it; an address is not a name (RFC 6066, 3). */
function namedIn(authority: string): { readonly servername?: string } {
  const servername = authority.replace(/:\d*$/, '')
  return servername === '' || /[[\]]/.test(servername) || isIP(servername) !== 0
    ? {}
    : { servername }
}
