import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

const carriers = new WeakMap<Socket, Socket>()

/** Registers the TCP socket below a TLS socket, so that a reset skips the clean TLS close. */
export function setUnderlyingSocket(secured: TLSSocket, tcp: Socket): void {
  carriers.set(secured, tcp)
}

/**
 * Closes the connection at once, with a TCP reset if possible. While a FIN is pending Node.js cannot reset, and would
 * leak the socket.
 */
export function resetConnection(socket: Socket): void {
  const tcp = socket instanceof TLSSocket ? carriers.get(socket) : socket
  const isEnding = socket.writableEnded && !socket.writableFinished
  if (!tcp || isEnding) socket.destroy()
  else tcp.resetAndDestroy()
}
