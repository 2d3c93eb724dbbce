import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'
import type { Connections } from '../connections.ts'

/**
 * Counts the connections of a TLS server from their first packet on, and lets other code treat TLS sockets like TCP
 * sockets. Node.js does not show which TCP socket a TLS socket uses, but both have the same addresses and ports.
 */
export function linkSockets(server: Server, connections: Connections): void {
  const inHandshake = new Map<string, Socket>()

  server.on('connection', (tcp: Socket) => {
    const endpoints = endpointsOf(tcp)
    inHandshake.set(endpoints, tcp)
    tcp.once('close', () => {
      if (inHandshake.get(endpoints) === tcp) inHandshake.delete(endpoints)
    })
    connections.add(tcp, true)
  })

  // Runs before node:http gets the socket, which may already have received a request.
  server.prependListener('secureConnection', (secured: TLSSocket) => {
    const endpoints = endpointsOf(secured)
    const tcp = inHandshake.get(endpoints)
    if (tcp) {
      inHandshake.delete(endpoints)
      resetThrough(secured, tcp)
      connections.secure(tcp, secured)
    } else secured.destroy()
  })
}

/**
 * A TLS socket of Node.js refuses to reset its connection. A clean close in its place would let the client take a broken
 * response for a complete one.
 */
function resetThrough(secured: TLSSocket, tcp: Socket): void {
  secured.resetAndDestroy = () => {
    // While a FIN is pending Node.js cannot reset, and would leak the socket.
    const isEnding = secured.writableEnded && !secured.writableFinished
    if (isEnding || tcp.destroyed) secured.destroy()
    else tcp.resetAndDestroy()
    return secured
  }
}

function endpointsOf(socket: Socket): string {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  return [localAddress, localPort, remoteAddress, remotePort].join(' ')
}
