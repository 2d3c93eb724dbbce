import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { takeRawBody, rawBodyOf } from './raw-body.ts'
import type { RawBody } from './raw-body.ts'
import { waitFor } from '../wait.ts'

const mebibyte = 1024 * 1024

type Handler = (taken: RawBody | undefined, req: IncomingMessage, res: ServerResponse) => unknown

async function setup(t: TestContext, handler: Handler) {
  const urls: string[] = []
  const server = createServer(async (req, res) => {
    urls.push(req.url ?? '')
    await Promise.resolve()
    await handler(takeRawBody(req, res), req, res)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close().closeAllConnections())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const open = () => {
    const socket = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true })
    let received = ''
    let state = 'open'
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => (received += text))
    socket.on('end', () => (state = 'ended'))
    socket.on('error', () => (state = 'reset'))
    return { socket, received: () => received, state: () => state }
  }
  return { open, urls }
}

function head(length: number, path = '/'): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`
}

async function hashOf(pieces: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

test('a large body arrives complete, in reused buffers', async (t) => {
  const body = randomBytes(20 * mebibyte)
  const memory = new Set<ArrayBufferLike>()
  const { open } = await setup(t, async (taken, req, res) => {
    assert.ok(taken)
    const hash = createHash('sha256')
    for await (const piece of taken.pieces) {
      memory.add(piece.buffer)
      hash.update(piece)
    }
    res.end(`${req.complete} ${hash.digest('hex')}`)
  })
  const { socket, received, state } = open()
  socket.write(head(body.length))
  socket.write(body)
  await waitFor('the answer', () => state() !== 'open')
  assert.match(received(), /\r\nConnection: close\r\n/)
  assert.ok(received().endsWith(`true ${createHash('sha256').update(body).digest('hex')}`))
  assert.ok(memory.size < 8, `${memory.size} pieces of memory`)
})

test('bytes that came with the head are the start of the body', async (t) => {
  const body = randomBytes(2 * mebibyte)
  const { open } = await setup(t, async (taken, _, res) => {
    assert.ok(taken)
    res.end(await hashOf(taken.pieces))
  })
  const { socket, received, state } = open()
  socket.write(Buffer.concat([Buffer.from(head(body.length)), body.subarray(0, 1000)]))
  await new Promise((resolve) => setImmediate(resolve))
  for (let at = 1000; at < body.length; at += 77_777) socket.write(body.subarray(at, at + 77_777))
  await waitFor('the answer', () => state() !== 'open')
  assert.ok(received().endsWith(createHash('sha256').update(body).digest('hex')))
})

test('bytes that have arrived are delivered before more arrive', async (t) => {
  let bytes = 0
  const { open } = await setup(t, async (taken, _, res) => {
    assert.ok(taken)
    for await (const piece of taken.pieces) bytes += piece.length
    res.end('done')
  })
  const { socket, received } = open()
  socket.write(`${head(2 * mebibyte)}abc`)
  await waitFor('the first bytes', () => bytes === 3)
  for (let count = 4; count < 20; count += 1) {
    socket.write('x')
    await waitFor('another byte', () => bytes === count)
  }
  socket.write(Buffer.alloc(2 * mebibyte - 19))
  await waitFor('the answer', () => received().endsWith('done'))
})

test('a slow consumer slows the client and gets everything in order', async (t) => {
  const body = randomBytes(16 * mebibyte)
  const { open } = await setup(t, async (taken, _, res) => {
    assert.ok(taken)
    const hash = createHash('sha256')
    for await (const piece of taken.pieces) {
      const copy = Buffer.from(piece)
      for (let turn = 0; turn < 3; turn += 1) await new Promise((go) => setImmediate(go))
      assert.ok(piece.equals(copy), 'the piece changed while it was in use')
      hash.update(piece)
    }
    res.end(hash.digest('hex'))
  })
  const { socket, received, state } = open()
  socket.write(head(body.length))
  socket.write(body)
  await waitFor('the answer', () => state() !== 'open')
  assert.ok(received().endsWith(createHash('sha256').update(body).digest('hex')))
})

test('the socket is not read while the body is not consumed', async (t) => {
  let start = () => {}
  const { open } = await setup(t, async (taken, _, res) => {
    assert.ok(taken)
    await new Promise<void>((resolve) => (start = resolve))
    res.end(await hashOf(taken.pieces))
  })
  const { socket, state } = open()
  const body = randomBytes(64 * mebibyte)
  socket.write(head(body.length))
  let isSent = false
  socket.write(body, () => (isSent = true))
  let before = -1
  const stands = () => {
    const now = socket.bytesWritten - socket.writableLength
    const isSame = now === before
    before = now
    return isSame
  }
  await waitFor('the sender to stop', stands, { intervalMs: 200 })
  assert.equal(isSent, false)
  start()
  await waitFor('the answer', () => state() !== 'open')
  assert.equal(isSent, true)
})

test('a request after the body is never served', async (t) => {
  const { open, urls } = await setup(t, async (taken, _, res) => {
    assert.ok(taken)
    res.end(await hashOf(taken.pieces))
  })
  const { socket, received, state } = open()
  const next = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const body = next.repeat(50_000)
  socket.write(head(body.length, '/outer') + body + next.repeat(100))
  await waitFor('the end', () => state() !== 'open')
  assert.deepEqual(urls, ['/outer'])
  assert.equal(received().match(/HTTP\/1.1 200/g)?.length, 1)
  assert.ok(received().endsWith(createHash('sha256').update(body).digest('hex')))
})

test('a client that closes its side after the body still gets a response', async (t) => {
  const { open } = await setup(t, async (taken, req, res) => {
    assert.ok(taken)
    const hash = await hashOf(taken.pieces)
    await waitFor('the end', () => req.socket.readableEnded)
    res.end(hash)
  })
  const { socket, received, state } = open()
  const body = Buffer.alloc(2 * mebibyte)
  socket.write(head(body.length))
  socket.end(body)
  await waitFor('the answer', () => state() !== 'open')
  assert.ok(received().endsWith(createHash('sha256').update(body).digest('hex')))
})

const departures: [string, (socket: Socket) => void][] = [
  ['resets its connection', (socket) => socket.resetAndDestroy()],
  ['closes its connection', (socket) => socket.destroy()],
  ['ends its side', (socket) => void socket.end()],
]

for (const [name, leave] of departures) {
  test(`a client that ${name} in the middle of the body is an error`, async (t) => {
    let error: unknown
    let bytes = 0
    const { open } = await setup(t, async (taken) => {
      assert.ok(taken)
      try {
        for await (const piece of taken.pieces) bytes += piece.length
      } catch (thrown) {
        error = thrown
      }
    })
    const { socket } = open()
    socket.write(`${head(2 * mebibyte)}abc`)
    await waitFor('the beginning', () => bytes === 3)
    leave(socket)
    await waitFor('the error', () => error !== undefined)
    assert.match(String(error), /The client disconnected/)
  })
}

for (const way of ['before it is read', 'in the middle'] as const) {
  test(`a response ${way} arrives, and then the connection closes cleanly`, async (t) => {
    const { open } = await setup(t, async (taken, _, res) => {
      assert.ok(taken)
      if (way === 'in the middle') {
        for await (const piece of taken.pieces) if (piece.length > 0) break
      }
      res.end('no thanks')
    })
    const { socket, received, state } = open()
    socket.write(head(20 * mebibyte))
    await once(socket.write(Buffer.alloc(10 * mebibyte)) ? socket : socket, 'drain')
    await waitFor('the answer', () => received().endsWith('no thanks'))
    assert.equal(state(), 'open')
    socket.end(Buffer.alloc(10 * mebibyte))
    await waitFor('the end', () => state() !== 'open')
    assert.equal(state(), 'ended')
  })
}

test('reading from a discarded body rejects', async (t) => {
  let error: unknown
  const { open } = await setup(t, async (taken, req, res) => {
    assert.ok(taken)
    const reading = hashOf(taken.pieces).catch((thrown: unknown) => (error = thrown))
    rawBodyOf(req)?.discard()
    await reading
    res.end('done')
  })
  const { socket, received } = open()
  socket.write(`${head(2 * mebibyte)}abc`)
  await waitFor('the answer', () => received().endsWith('done'))
  assert.match(String(error), /was discarded/)
})

const usual: [string, string, string][] = [
  ['a small one', 'Content-Length: 3', 'abc'],
  ['one in chunks', 'Transfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'],
  ['none', 'X: y', ''],
]

for (const [name, framing, body] of usual) {
  test(`${name} is read by node:http, and the connection stays open`, async (t) => {
    const { open, urls } = await setup(t, (taken, req, res) => {
      assert.equal(taken, undefined)
      req.resume().once('end', () => res.end('done'))
    })
    const { socket, received } = open()
    socket.write(`POST /1 HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n\r\n${body}`)
    await waitFor('the answer', () => received().includes('done'))
    socket.write('GET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor('the other', () => urls.length === 2)
  })
}

test('a body of a pipelined request is read by node:http', async (t) => {
  const waiting: (() => void)[] = []
  const { open, urls } = await setup(t, (taken, req, res) => {
    assert.equal(taken, undefined)
    req.resume().once('end', () => {
      const answer = () => res.end(`answer to ${req.url};`)
      if (req.url === '/1') waiting.push(answer)
      else answer()
    })
  })
  const { socket, received } = open()
  const first = 'GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n'
  socket.write(first + head(2 * mebibyte, '/2'))
  socket.write(Buffer.alloc(2 * mebibyte))
  await waitFor('both', () => urls.length === 2)
  for (const answer of waiting) answer()
  await waitFor('the answers', () => /answer to \/1;[^]*answer to \/2;/.test(received()))
})
