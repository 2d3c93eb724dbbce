import type { Server, Socket } from 'node:net'

/** The connections of a server. Returns how to reset them all but one. */
export function trackConnections(server: Server): (except?: Socket) => void {
  const open = new Set<Socket>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return (except) => {
    for (const socket of open) if (socket !== except) socket.resetAndDestroy()
  }
}
