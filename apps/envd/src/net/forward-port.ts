/** Forwards connections from a port of the sandbox's network address to the same port on loopback. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { ForwardPort } from '../domain/sandbox/listeners.ts'

export const forwardPort: ForwardPort = async (address, port, host) => {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true })
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  server.on('connection', (outer) => {
    track(outer)
    const inner = connect({ host, port, allowHalfOpen: true, noDelay: true })
    track(inner)
    relay(outer, inner)
  })
  server.listen({ host: address, port, exclusive: true })
  const isListening = await once(server, 'listening').then(
    () => true,
    () => false,
  )
  if (!isListening) return undefined
  server.on('error', () => {}) // accept failed, as when descriptors run out; open connections continue
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Relays data, end-of-file and errors in both directions. */
function relay(outer: Socket, inner: Socket): void {
  for (const [from, to] of [
    [outer, inner],
    [inner, outer],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => to.destroySoon())
    from.pipe(to)
  }
}

/** Returns the address that the edge connects to. A restore may change this address. */
export function ownAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}
