import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { StoreUnderTest } from './store.ts'

/** TCP proxy that a test can interrupt and restore. */
export interface Cable extends AsyncDisposable {
  readonly port: number
  /** Closes all connections and refuses new ones. */
  cut(): void
  /** Silently drops all data, but keeps the connections open. */
  freeze(): void
  mend(): void
}

/** Returns the same PostgreSQL store, reached through a cable. */
export async function throughCable(store: StoreUnderTest) {
  const url = new URL(store.location)
  const cable = await layCable({ host: url.hostname, port: Number(url.port) })
  url.port = String(cable.port)
  const env = { ...store.env, ATOLL_DATABASE_URL: url.href }
  return { cable, store: { ...store, location: url.href, env } }
}

async function layCable(target: { readonly host: string; readonly port: number }): Promise<Cable> {
  const open = new Set<Socket>()
  let state: 'whole' | 'cut' | 'frozen' = 'whole'
  const cut = () => {
    state = 'cut'
    for (const socket of open) socket.destroy()
  }
  const server = createServer((near) => {
    const far = connect(target)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('data', (chunk) => state === 'whole' && to.write(chunk))
      from.on('error', () => {})
      from.once('close', () => {
        open.delete(from)
        to.destroy()
      })
    }
  })
  server.on('connection', (near) => {
    if (state === 'cut') near.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('there is no port')
  return {
    port: address.port,
    cut,
    freeze: () => void (state = 'frozen'),
    mend: () => void (state = 'whole'),
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
