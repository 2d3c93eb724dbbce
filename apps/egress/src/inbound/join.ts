import type { Socket } from 'node:net'
import type { Outside } from '../domain/way.ts'
import { cut } from './cut.ts'

/** Resolves when both are closed. */
export async function join(inside: Socket, { socket: outside, first }: Outside): Promise<void> {
  if (inside.destroyed) return void outside.destroy()
  if (first.length > 0) inside.write(first)
  const ways = [
    [inside, outside],
    [outside, inside],
  ] as const
  const closed = ways.map(
    ([from, to]) =>
      new Promise<void>((resolve) => {
        from.setKeepAlive(true, keepAliveMs)
        from.on('error', () => cut(to))
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
