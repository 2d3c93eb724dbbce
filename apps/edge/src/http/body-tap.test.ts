import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer as createNetServer } from 'node:net'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { rawClient, startTestEdge } from '../sim/test-edge.ts'

async function setup(t: TestContext) {
  const testEdge = await startTestEdge()
  t.after(() => testEdge.close())
  /** Starts a program that ignores the request. */
  const speak = (id: string, onClient: (socket: Socket) => void, address?: string) =>
    testEdge.serve(
      id,
      createNetServer((socket) => {
        socket.on('error', () => {})
        onClient(socket)
      }),
      address,
    )
  return { ...testEdge, speak }
}

function requestText(headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines.join('')}\r\n`
}

const large = 24 * 1024 * 1024

for (const framing of ['chunks', 'a known length'] as const) {
  test(`slow clients do not get each other's bytes, with ${framing}`, async (t) => {
    const { edgePort, serve } = await setup(t)
    const bodies = [1, 2, 3, 4].map(() => randomBytes(large))
    const read = bodies.map(async (body, at) => {
      const headers = await serve(
        `s${at}`,
        (_, res) => {
          if (framing === 'a known length') res.setHeader('Content-Length', body.length)
          Readable.from(unevenPieces(body)).pipe(res)
        },
        `127.0.1.${at + 1}`,
      )
      return (await readSlowly(edgePort, requestText(headers), at)).equals(body)
    })
    assert.deepEqual(await Promise.all(read), [true, true, true, true])
  })
}

test('a response that ends with the connection is forwarded completely', async (t) => {
  const { edgePort, speak } = await setup(t)
  const body = randomBytes(large)
  const headers = await speak('abc', (socket) => {
    socket.once('data', () => socket.write('HTTP/1.0 200 OK\r\n\r\n') && socket.end(body))
  })
  assert.ok((await readSlowly(edgePort, requestText(headers), 1)).equals(body))
})

test('a response that arrives byte by byte after early hints is forwarded', async (t) => {
  const { url, speak } = await setup(t)
  const text =
    'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' +
    '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
  const headers = await speak('abc', async (socket) => {
    socket.setNoDelay(true)
    await once(socket, 'data')
    for (const character of text) await new Promise((sent) => socket.write(character, sent))
  })
  assert.equal(await (await fetch(url, { headers })).text(), 'abcde')
})

test('a response to an unread request is forwarded', async (t) => {
  const { url, speak } = await setup(t)
  const headers = await speak('abc', (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly')
  })
  assert.equal(await (await fetch(url, { headers })).text(), 'early')
})

test('bytes after the announced length are dropped', async (t) => {
  const { edgePort, speak } = await setup(t)
  const headers = await speak('abc', (socket) => {
    const next = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
    socket.once('data', () =>
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok${next}${'x'.repeat(100_000)}`),
    )
  })
  const client = rawClient(edgePort, requestText(headers))
  await waitFor('the end', () => client.state() !== 'open')
  assert.match(client.received(), /^HTTP\/1.1 200 OK[^]*\r\n\r\nok$/)
})

const broken: [string, string][] = [
  ['a chunk longer than its size', 'Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n'],
  ['a chunk of no size', 'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n'],
  ['fewer bytes than announced', 'Content-Length: 10\r\n\r\nabc'],
  ['no last chunk', 'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n'],
  ['invalid trailers', 'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\x01\r\n\r\n'],
]

for (const [name, rest] of broken) {
  test(`a response with ${name} is reset, and the edge keeps working`, async (t) => {
    const { edgePort, speak } = await setup(t)
    const headers = await speak('abc', (socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${rest}`, 'latin1'))
    })
    for (let time = 0; time < 2; time += 1) {
      const client = rawClient(edgePort, requestText(headers))
      await waitFor('the reset', () => client.state() === 'reset')
    }
  })
}

function* unevenPieces(body: Buffer): Generator<Buffer> {
  const sizes = [1, 70_000, 13, 300_000, 4096, 65_536]
  for (let at = 0, turn = 0; at < body.length; turn += 1) {
    const end = at + (sizes[turn % sizes.length] ?? 1)
    yield body.subarray(at, end)
    at = end
  }
}

/** Returns the raw body of the response to `text`, read with pauses of at least one turn of the event loop. */
async function readSlowly(port: number, text: string, pauseMs: number): Promise<Buffer> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text)
  const pieces: Buffer[] = []
  for await (const piece of socket) {
    if (Buffer.isBuffer(piece)) pieces.push(piece)
    if (pieces.length % 16 === 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  const all = Buffer.concat(pieces)
  const end = all.indexOf('\r\n\r\n') + 4
  const isChunked = /transfer-encoding: chunked/i.test(all.toString('latin1', 0, end))
  return isChunked ? unchunked(all.subarray(end)) : all.subarray(end)
}

function unchunked(body: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; ;) {
    const end = body.indexOf('\r\n', at)
    const size = Number.parseInt(body.toString('latin1', at, end), 16)
    if (size === 0) return Buffer.concat(pieces)
    pieces.push(body.subarray(end + 2, end + 2 + size))
    at = end + 4 + size
  }
}
