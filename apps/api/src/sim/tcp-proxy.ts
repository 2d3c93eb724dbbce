import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { StoreUnderTest } from './store.ts'

/** TCP proxy that a test can interrupt and restore. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  /** Number of connections so far, also refused ones. */
  accepted(): number
  /** Closes all connections and refuses new ones. */
  cut(): void
  /** Silently drops all data, but keeps the connections open. */
  freeze(): void
  restore(): void
}

/** Returns the same PostgreSQL store, reached through a proxy that the test controls. */
export async function throughProxy(store: StoreUnderTest) {
  const url = new URL(store.location)
  const proxy = await startProxy({ host: url.hostname, port: Number(url.port) })
  url.port = String(proxy.port)
  const env = { ...store.env, ATOLL_DATABASE_URL: url.href }
  return { proxy, store: { ...store, location: url.href, env } }
}

async function startProxy(target: {
  readonly host: string
  readonly port: number
}): Promise<TcpProxy> {
  const open = new Set<Socket>()
  let state: 'open' | 'cut' | 'frozen' = 'open'
  let accepted = 0
  const cut = () => {
    state = 'cut'
    for (const socket of open) socket.destroy()
  }
  const server = createServer((client) => {
    const upstream = connect(target)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.on('data', (chunk) => state === 'open' && to.write(chunk))
      from.on('error', () => {})
      from.once('close', () => {
        open.delete(from)
        to.destroy()
      })
    }
  })
  server.on('connection', (client) => {
    accepted += 1
    if (state === 'cut') client.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string')
    throw new Error('The proxy of the test listens on no port')
  return {
    port: address.port,
    accepted: () => accepted,
    cut,
    freeze: () => void (state = 'frozen'),
    restore: () => void (state = 'open'),
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
