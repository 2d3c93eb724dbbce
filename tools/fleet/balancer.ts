/**
 * A small TCP load balancer, as stands before apis and edges. A connection goes to the next backend that accepts it; a
 * backend that refuses is passed over.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'

export interface Balancer extends AsyncDisposable {
  readonly url: string
}

const connectLimitMs = 2_000

/** `backends`: URLs such as http://127.0.0.1:3000. */
export async function startBalancer(backends: readonly string[]): Promise<Balancer> {
  const targets = backends.map((url) => new URL(url))
  const open = new Set<Socket>()
  let next = 0
  const server = createServer({ pauseOnConnect: true }, (client) => {
    track(open, client)
    next += 1
    forward(client, rotate(targets, next), open)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const bound = server.address()
  if (bound === null || typeof bound !== 'object') throw new Error('the balancer has no port')
  return {
    url: `http://127.0.0.1:${bound.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function rotate<T>(list: readonly T[], by: number): T[] {
  const start = by % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}

function forward(client: Socket, [target, ...others]: readonly URL[], open: Set<Socket>): void {
  if (!target) return void client.destroy()
  const backend = connect({ host: target.hostname, port: Number(target.port) })
  track(open, backend)
  backend.setTimeout(connectLimitMs, () => backend.destroy())
  let isConnected = false
  backend.once('connect', () => {
    isConnected = true
    backend.setTimeout(0)
    client.pipe(backend).pipe(client)
    client.once('close', () => backend.destroy())
    client.resume()
  })
  backend.once('close', () => {
    if (isConnected || client.destroyed) client.destroy()
    else forward(client, others, open)
  })
}

function track(open: Set<Socket>, socket: Socket): void {
  open.add(socket)
  socket.on('error', () => {}) // `close` follows
  socket.once('close', () => open.delete(socket))
}
