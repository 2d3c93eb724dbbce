import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { rawClient, startTestEdge } from '../sim/test-edge.ts'

async function setup(t: TestContext) {
  const testEdge = await startTestEdge()
  t.after(() => testEdge.close())
  return testEdge
}

test('a WebSocket opens, echoes and closes', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', echoServer())
  const socket = new WebSocket(`ws://127.0.0.1:${edgePort}/chat?room=1`, { headers })
  const heard: unknown[] = []
  let state = 'connecting'
  socket.addEventListener('open', () => (state = 'open'))
  socket.addEventListener('close', () => (state = 'closed'))
  socket.addEventListener('message', (event) => heard.push(event.data))
  await waitFor('the handshake', () => state === 'open')
  socket.send('hello')
  socket.send('x'.repeat(100))
  await waitFor('both echoes', () => heard.length === 2)
  assert.deepEqual(heard, ['hello', 'x'.repeat(100)])
  socket.close()
  await waitFor('the close', () => state === 'closed')
})

test('bytes sent along with the handshake are not lost, on either side', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', rawEcho('welcome '))
  const client = rawClient(edgePort, `${upgradeText(headers)}early`)
  await waitFor('the echo', () => client.received().endsWith('welcome early'))
  assert.match(client.received(), /^HTTP\/1.1 101 Switching Protocols\r\n/)
  assert.match(client.received(), /\r\nUpgrade: raw\r\n/)
})

test('a half-close is forwarded: the sandbox can still send after the client has finished', async (t) => {
  const { edgePort, serve } = await setup(t)
  const server = createServer({ shouldUpgradeCallback: () => true })
  server.on('upgrade', (_, socket) => {
    socket.write(switching)
    socket.resume().on('end', () => socket.end('goodbye'))
  })
  const headers = await serve('abc', server)
  const client = rawClient(edgePort, upgradeText(headers))
  await waitFor('the switch', () => client.received().includes('101'))
  client.socket.end()
  await waitFor('the end', () => client.state() === 'ended')
  assert.match(client.received(), /goodbye$/)
})

test('when the sandbox ends, an upgraded connection is reset', async (t) => {
  const { edgePort, node, serve } = await setup(t)
  const headers = await serve('abc', rawEcho('welcome'))
  const client = rawClient(edgePort, upgradeText(headers))
  await waitFor('the switch', () => client.received().endsWith('welcome'))
  node.end('abc')
  await waitFor('the reset', () => client.state() === 'reset')
})

test('a client that disconnects closes the connection in the sandbox', async (t) => {
  const { edgePort, serve } = await setup(t)
  let closed = false
  const headers = await serve(
    'abc',
    rawEcho('welcome', () => (closed = true)),
  )
  const client = rawClient(edgePort, upgradeText(headers))
  await waitFor('the switch', () => client.received().endsWith('welcome'))
  client.socket.resetAndDestroy()
  await waitFor('the close', () => closed)
})

test('the response of a server that declines to upgrade is forwarded', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => {
    res.writeHead(426, { 'X-Saw': req.headers.upgrade ?? 'none' })
    res.end('no upgrade here')
  })
  const client = rawClient(edgePort, upgradeText(headers))
  await waitFor('the end', () => client.state() === 'ended')
  assert.match(client.received(), /^HTTP\/1.1 426 [^]*X-Saw: raw[^]*Connection: close/)
  assert.match(client.received(), /no upgrade here/)
})

test('an upgrade to an unknown sandbox, a closed port or an internal path is refused', async (t) => {
  const { edgePort, node } = await setup(t)
  node.start('abc', '127.0.0.2')
  const cases: [Record<string, string>, string, RegExp][] = [
    [{ 'Svc-Sandbox-Id': 'nosuch', 'Svc-Sandbox-Port': '80' }, '/', /^HTTP\/1.1 502 [^]*not found/],
    [{ 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': '1' }, '/', /^HTTP\/1.1 502 [^]*"port":1/],
    [{ 'Svc-Sandbox-Id': 'abc', 'Svc-Sandbox-Port': '49983' }, '/init', /^HTTP\/1.1 404 /],
    [{ 'Svc-Sandbox-Id': 'abc' }, '/', /^HTTP\/1.1 400 [^]*Svc-Sandbox-Port/],
  ]
  for (const [headers, path, expected] of cases) {
    const client = rawClient(edgePort, upgradeText(headers, path))
    await waitFor('the end', () => client.state() === 'ended')
    assert.match(client.received(), expected)
  }
})

test('an offer of cleartext HTTP/2 is ignored and the request served', async (t) => {
  const { edgePort, serve } = await setup(t)
  const headers = await serve('abc', (req, res) => {
    res.end(`saw ${req.headers.upgrade} ${String(req.headers['http2-settings'])}`)
  })
  const more = 'HTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  const text = upgradeText(headers).replace('Upgrade: raw\r\n', `Upgrade: h2c\r\n${more}`)
  const client = rawClient(edgePort, text)
  await waitFor('the answer', () => client.received().includes('saw undefined undefined'))
})

const switching = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\n'

function upgradeText(headers: Record<string, string>, path = '/'): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const upgrade = 'Connection: Upgrade\r\nUpgrade: raw\r\n'
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}${upgrade}\r\n`
}

/** Serves an unframed protocol: a greeting, then an echo. */
function rawEcho(greeting: string, onClose = () => {}): Server {
  const server = createServer()
  server.on('upgrade', (_, socket, head) => {
    socket.on('error', () => {})
    socket.on('close', onClose)
    socket.write(switching + greeting)
    if (head.length > 0) socket.write(head)
    socket.pipe(socket)
  })
  return server
}

/** Minimal WebSocket server (RFC 6455): echoes frames of up to 125 bytes. */
function echoServer(): Server {
  const server = createServer()
  server.on('upgrade', (req, socket) => {
    const key = `${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
    const accept = createHash('sha1').update(key).digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      rest = echoFrames(socket, rest)
    })
  })
  return server
}

function echoFrames(socket: Duplex, bytes: Buffer): Buffer {
  let rest = bytes
  while (rest.length >= 6) {
    const [first = 0, second = 0] = rest
    const length = second & 0x7f
    if (rest.length < 6 + length) break
    const mask = rest.subarray(2, 6)
    const payload = rest.subarray(6, 6 + length).map((byte, at) => byte ^ (mask[at % 4] ?? 0))
    socket.write(Buffer.concat([Buffer.from([first, length]), payload]))
    rest = rest.subarray(6 + length)
    if ((first & 0x0f) === 8) socket.end()
  }
  return rest
}
