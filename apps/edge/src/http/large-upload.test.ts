import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createServer as createNetServer } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { rawClient, startTestEdge } from '../sim/test-edge.ts'

const large = 8 * 1024 * 1024

async function setup(t: TestContext) {
  const testEdge = await startTestEdge()
  t.after(() => testEdge.close())
  /** Starts a program that ignores the request. */
  const speak = (onClient: (socket: Socket) => void) =>
    testEdge.serve(
      'abc',
      createNetServer((socket) => {
        socket.on('error', () => {})
        onClient(socket)
      }),
    )
  return { ...testEdge, speak }
}

function head(headers: Record<string, string>, length: number, path = '/'): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}Content-Length: ${length}\r\n\r\n`
}

test('concurrent uploads to slow programs do not mix their bytes', async (t) => {
  const { edgePort, serve } = await setup(t)
  const bodies = [1, 2, 3, 4].map(() => randomBytes(large))
  const uploads = bodies.map(async (body, at) => {
    const headers = await serve(
      `s${at}`,
      async (req, res) => {
        const hash = createHash('sha256')
        for await (const piece of slowly(req, at)) hash.update(piece)
        res.end(`${req.headers['content-length']} ${hash.digest('hex')}`)
      },
      `127.0.1.${at + 1}`,
    )
    const client = rawClient(edgePort, head(headers, body.length))
    client.socket.write(body)
    await waitFor('the answer', () => client.state() !== 'open')
    const expected = `${large} ${createHash('sha256').update(body).digest('hex')}`
    return [client.state(), client.received().endsWith(expected)]
  })
  const expected = bodies.map(() => ['ended', true])
  assert.deepEqual(await Promise.all(uploads), expected)
})

test('an echoed body streams both ways at once', async (t) => {
  const { url, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => void req.pipe(res))
  const body = randomBytes(3 * large)
  const reply = await fetch(url, { method: 'POST', headers, body })
  assert.ok(body.equals(Buffer.from(await reply.arrayBuffer())))
})

test('a request hidden behind a large body reaches no sandbox', async (t) => {
  const { edgePort, serve } = await setup(t)
  const seen: string[] = []
  const headers = await serve('abc', (req, res) => {
    seen.push(`${req.method} ${req.url}`)
    req.resume().once('end', () => res.end('done'))
  })
  const next = head(headers, 0, '/smuggled')
  const body = next.repeat(Math.ceil(large / next.length))
  const client = rawClient(edgePort, head(headers, body.length, '/outer') + body + next.repeat(9))
  await waitFor('the end', () => client.state() !== 'open')
  assert.deepEqual(seen, ['POST /outer'])
  assert.match(client.received(), /^HTTP\/1.1 200 OK\r\n[^]*\r\nConnection: close\r\n/)
})

test('a client that expects 100 before a large body gets it', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => {
    let bytes = 0
    req.on('data', (piece: Buffer) => (bytes += piece.length))
    req.once('end', () => res.end(`${bytes} came`))
  })
  const client = rawClient(edgePort, head({ ...headers, Expect: '100-continue' }, large))
  await waitFor('100', () => client.received().startsWith('HTTP/1.1 100 Continue'))
  client.socket.write(Buffer.alloc(large))
  await waitFor('the answer', () => client.received().endsWith(`${large} came`))
})

test('a client that disconnects during a large upload ends the request in the sandbox', async (t) => {
  const { edgePort, serve } = await setup(t)
  let bytes = 0
  let isAborted = false
  const headers = await serve('abc', (req) => {
    req.on('data', (piece: Buffer) => (bytes += piece.length))
    req.on('error', () => (isAborted = true))
  })
  const client = rawClient(edgePort, `${head(headers, large)}abc`)
  await waitFor('the beginning', () => bytes === 3)
  client.socket.destroy()
  await waitFor('the sandbox to notice', () => isAborted)
})

test('when the sandbox ends, a large upload is reset', async (t) => {
  const { edgePort, node, serve } = await setup(t)
  let isThere = false
  const headers = await serve('abc', (req) => void req.once('data', () => (isThere = true)))
  const client = rawClient(edgePort, head(headers, large))
  client.socket.write(Buffer.alloc(large - 1))
  await waitFor('the beginning', () => isThere)
  node.end('abc')
  await waitFor('the reset', () => client.state() === 'reset')
})

test('a program that closes during a large upload is a 502', async (t) => {
  const { edgePort, speak } = await setup(t)
  const headers = await speak((socket) => socket.once('data', () => socket.destroy()))
  const client = rawClient(edgePort, head(headers, large))
  client.socket.write(Buffer.alloc(large))
  await waitFor('the end', () => client.state() !== 'open')
  assert.match(client.received(), /^HTTP\/1.1 502 [^]*\r\nConnection: close\r\n[^]*"code":502\}$/)
  assert.equal(client.state(), 'ended')
})

test('a program that responds without reading the body does not block the client', async (t) => {
  const { edgePort, speak } = await setup(t)
  const headers = await speak((socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large')
    })
  })
  const client = rawClient(edgePort, head(headers, 4 * large))
  client.socket.write(Buffer.alloc(4 * large))
  await waitFor('the end', () => client.state() !== 'open')
  assert.match(client.received(), /^HTTP\/1.1 413 [^]*\r\nConnection: close\r\n[^]*too large$/)
  assert.equal(client.state(), 'ended')
})

async function* slowly(req: IncomingMessage, turns: number): AsyncGenerator<Buffer> {
  for await (const piece of req) {
    for (let turn = 0; turn < turns; turn += 1) await new Promise((go) => setImmediate(go))
    if (Buffer.isBuffer(piece)) yield piece
  }
}
