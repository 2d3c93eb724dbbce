import type { Socket } from 'node:net'
import type { UpstreamConnection } from '../domain/route.ts'
import { resetConnection } from './reset-connection.ts'

/** Copies bytes in both directions. Resolves when both sockets are closed. */
export async function pipeBothWays(
  client: Socket,
  { socket: upstream, initialBytes }: UpstreamConnection,
): Promise<void> {
  if (client.destroyed) return void upstream.destroy()
  if (initialBytes.length > 0) client.write(initialBytes)
  const ways = [
    [client, upstream],
    [upstream, client],
  ] as const
  const closed = ways.map(
    ([from, to]) =>
      new Promise<void>((resolve) => {
        from.setKeepAlive(true, keepAliveMs)
        from.on('error', () => resetConnection(to))
        from.once('close', () => {
          to.destroySoon()
          resolve()
        })
        from.pipe(to)
      }),
  )
  await Promise.all(closed)
}

const keepAliveMs = 60_000
