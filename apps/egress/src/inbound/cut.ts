import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

const carriers = new WeakMap<Socket, Socket>()

/** To be told of TLS that runs over `tcp`, and which is not to end cleanly when it is cut. */
export function setCarrier(secured: TLSSocket, tcp: Socket): void {
  carriers.set(secured, tcp)
}

/** At once, with a reset where Node.js can send one: while an end is on its way it cannot, and would lose the socket. */
export function cut(socket: Socket): void {
  const tcp = socket instanceof TLSSocket ? carriers.get(socket) : socket
  const isEnding = socket.writableEnded && !socket.writableFinished
  if (!tcp || isEnding) socket.destroy()
  else tcp.resetAndDestroy()
}
