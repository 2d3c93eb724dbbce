/**
 * Process that opens many idle connections to a server. It uses its own loopback address, because one address has ports
 * for only about 28,000 connections.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'

export interface Flood extends Disposable {
  /** Opens this many connections, whether or not earlier connections have ended. Resolves once each was open. */
  open(count: number): Promise<void>
}

const heads = {
  silent: '',
  'half a head': 'POST /sandboxes HTTP/1.1\r\nHost: localhost\r\nX-Half: ',
  /** Longest header that is accepted. */
  'a long half of a head': `GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ${'x'.repeat(15_000)}`,
  'idle after an answer': 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n',
} as const

export type FloodKind = keyof typeof heads
export const floodKinds: readonly FloodKind[] = [
  'silent',
  'half a head',
  'a long half of a head',
  'idle after an answer',
]

export function startFlood(kind: FloodKind, url: string, localAddress: string): Flood {
  const child = fork(import.meta.filename, [url, localAddress, heads[kind]])
  return {
    async open(count) {
      child.send(count)
      const [openedCount]: unknown[] = await once(child, 'message')
      if (openedCount !== count)
        throw new Error(`${String(openedCount)} of ${count} connections were opened`)
    },
    [Symbol.dispose]() {
      child.kill('SIGKILL')
    },
  }
}

const concurrency = 100

async function flood(count: number): Promise<number> {
  const [, , url = '', localAddress = '', text = ''] = process.argv
  const { hostname: host, port } = new URL(url)
  let startedCount = 0
  let openedCount = 0
  const workers = Array.from({ length: concurrency }, async () => {
    while (startedCount < count) {
      startedCount += 1
      const socket = connect({ host, port: Number(port), localAddress })
      socket.on('error', () => {}) // the server closes connections to make room
      await once(socket, 'connect').catch(() => {}) // counted below
      if (socket.readyState !== 'open') continue
      openedCount += 1
      if (text) socket.write(text)
      socket.resume()
    }
  })
  await Promise.all(workers)
  return openedCount
}

if (import.meta.main) {
  process.on('message', (count) => {
    void flood(Number(count)).then((openedCount) => process.send?.(openedCount))
  })
}
