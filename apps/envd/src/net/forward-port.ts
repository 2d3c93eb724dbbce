/** Passes connections to a port of this sandbox's own address on to loopback. */
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
  server.on('error', () => {}) // no more connections can be taken now; those there are go on
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** An end of one side is passed to the other, and so is a break. */
function relay(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => to.destroySoon())
    from.pipe(to)
  }
}

/** The address by which the edge comes in. It may become another when the sandbox is restored elsewhere. */
export function ownAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}
