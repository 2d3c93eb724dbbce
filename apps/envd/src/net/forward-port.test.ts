import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { forwardPort } from './forward-port.ts'

const outside = '127.77.0.1' // stands for the sandbox's own address

async function serve(t: TestContext, host: string, handle: (socket: Socket) => void) {
  const server: Server = createServer({ allowHalfOpen: true }, handle).listen(0, host)
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  const forwarding = await forwardPort(outside, address.port, host)
  assert.ok(forwarding)
  t.after(() => forwarding.close())
  return { port: address.port, server, forwarding }
}

for (const host of ['127.0.0.1', '::1']) {
  test(`forwards bytes and end-of-file in both directions to ${host}`, async (t) => {
    const { port } = await serve(t, host, async (socket) => {
      const heard = await text(socket)
      socket.end(`heard ${heard.length}`)
    })
    const socket = connect({ host: outside, port, allowHalfOpen: true })
    socket.end('x'.repeat(500_000))
    assert.equal(await text(socket), 'heard 500000')
  })
}

test("forwards the server's first bytes and its reset", async (t) => {
  const { port } = await serve(t, '127.0.0.1', (socket) => {
    socket.write('hello')
    socket.once('data', () => socket.resetAndDestroy())
  })
  const socket = connect(port, outside)
  socket.on('error', () => {})
  const [greeting] = await once(socket, 'data')
  assert.equal(String(greeting), 'hello')
  socket.write('go')
  await once(socket, 'close')
})

test('a missing server closes new connections, and closing the forward closes open ones', async (t) => {
  const { port, server, forwarding } = await serve(t, '127.0.0.1', (socket) => {
    socket.on('error', () => {})
    socket.write('hello')
  })
  const there = connect(port, outside)
  await once(there, 'data')
  server.close()
  const late = connect(port, outside)
  late.on('error', () => {})
  late.resume()
  await once(late, 'close')
  there.resume()
  const ended = once(there, 'close')
  await forwarding.close()
  await ended
})

test('a port in use is not forwarded', async (t) => {
  const { port } = await serve(t, '127.0.0.1', (socket) => socket.end())
  assert.equal(await forwardPort(outside, port, '127.0.0.1'), undefined)
})
