/**
 * Process that opens many idle connections to a server. It uses its own loopback address, because one address has ports
 * for only about 28,000 connections.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'

export interface Flood extends Disposable {
  /** Opens this many connections, whether or not earlier ones have ended. Resolves once each was open. */
  open(many: number): Promise<void>
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
    async open(many) {
      child.send(many)
      const [opened]: unknown[] = await once(child, 'message')
      if (opened !== many) throw new Error(`${String(opened)} of ${many} connections were opened`)
    },
    [Symbol.dispose]() {
      child.kill('SIGKILL')
    },
  }
}

const atOnce = 100

async function flood(many: number): Promise<number> {
  const [, , url = '', localAddress = '', text = ''] = process.argv
  const { hostname: host, port } = new URL(url)
  let begun = 0
  let opened = 0
  const workers = Array.from({ length: atOnce }, async () => {
    while (begun < many) {
      begun += 1
      const socket = connect({ host, port: Number(port), localAddress })
      socket.on('error', () => {}) // the server closes connections to make room
      await once(socket, 'connect').catch(() => {}) // counted below
      if (socket.readyState !== 'open') continue
      opened += 1
      if (text) socket.write(text)
      socket.resume()
    }
  })
  await Promise.all(workers)
  return opened
}

if (import.meta.main) {
  process.on('message', (many) => {
    void flood(Number(many)).then((opened) => process.send?.(opened))
  })
}
