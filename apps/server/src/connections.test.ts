import assert from 'node:assert/strict'
import type { ServerOptions } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { createConnections } from './connections.ts'
import type { ConnectionLimits } from './connections.ts'
import { startListener } from './listener.ts'

const completeRequest = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const halfRequest = 'GET / HTTP/1.1\r\nHost: loc'
const upgradeRequest =
  'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n'
const largeBody = Buffer.alloc(64 * 1024 * 1024)

interface Client {
  readonly socket: Socket
  received(): string
  isOpen(): boolean
}

/**
 * Starts a server with these limits. `/wait` never ends its response; `/large` sends more than the kernel buffers.
 * `open` sends `text` and waits until the response contains `awaited`; with 'unread', the client reads no response.
 */
async function setup(
  t: TestContext,
  limits: ConnectionLimits,
  options: ServerOptions & { readonly firstHeadMs?: number } = {},
) {
  const { firstHeadMs = 600_000 } = options
  // No address is exempt, so loopback addresses count as remote clients.
  const connections = createConnections(limits, { isExempt: () => false, firstHeadMs })
  const listen = { setting: 'ATOLL_LISTEN', address: { host: '127.0.0.1', port: 0 } }
  const listener = await startListener(listen, options, {
    connections,
    handle(req, res) {
      if (req.url === '/large') res.end(largeBody)
      else if (req.url === '/wait') res.write('waiting')
      else res.end('answered')
    },
  })
  listener.server.on('upgrade', (req, socket) => {
    if (req.headers['x-refuse']) socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\nrefused')
    else socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\n\r\nupgraded')
  })
  t.after(() => {
    listener.stop()
    connections.destroyAll()
  })
  const open = async (text: string, awaited = '', localAddress = '127.0.0.1'): Promise<Client> => {
    const { port } = listener.address
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
    let received = ''
    let isOpen = true
    socket.setEncoding('latin1')
    if (awaited !== 'unread') socket.on('data', (chunk: string) => (received += chunk))
    for (const event of ['end', 'error', 'close']) socket.on(event, () => (isOpen = false))
    const arrival = awaited === 'unread' ? 'request' : 'connection'
    const arrived = new Promise((resolve) => listener.server.once(arrival, resolve))
    socket.write(text)
    await arrived
    if (awaited !== 'unread') await waitFor('the answer', () => received.includes(awaited))
    t.after(() => socket.destroy())
    return { socket, received: () => received, isOpen: () => isOpen }
  }
  return { open }
}

async function openMany(count: number, open: () => Promise<Client>): Promise<Client[]> {
  const clients: Client[] = []
  for (let made = 0; made < count; made += 1) clients.push(await open())
  return clients
}

const openStates = (clients: readonly Client[]) => clients.map(({ isOpen }) => isOpen())
const fiveConnections = { maxConnections: 5, maxPerClient: 5 }

test('a full server closes the oldest connection with a half-sent request to admit a new client', async (t) => {
  const { open } = await setup(t, fiveConnections)
  const flood = await openMany(5, () => open(halfRequest))
  await open(completeRequest('/'), 'answered')
  await waitFor('the oldest connection to be closed', () => flood[0]?.isOpen() === false)
  assert.deepEqual(openStates(flood), [false, true, true, true, true])
})

for (const [kind, text, awaited] of [
  ['half-sent requests', halfRequest, ''],
  ['idle connections', completeRequest('/'), 'answered'],
] as const) {
  test(`a flood of ${kind} from one address replaces only connections of that address`, async (t) => {
    const { open } = await setup(t, { maxConnections: 5, maxPerClient: 100 })
    const others = await openMany(2, () => open('', '', '127.0.0.2'))
    const flood = await openMany(50, () => open(text, awaited, '127.0.0.3'))
    await waitFor('all but three to close', () => openStates(flood).filter(Boolean).length === 3)
    for (const other of others) {
      other.socket.write(completeRequest('/'))
      await waitFor('the answer', () => other.received().includes('answered'))
    }
  })
}

test('of one client, the connection that is idle longest is closed before connections that are new', async (t) => {
  const { open } = await setup(t, fiveConnections)
  const idle = await openMany(3, () => open(completeRequest('/'), 'answered'))
  const first = idle[0] ?? assert.fail()
  first.socket.write(completeRequest('/again'))
  await waitFor('the second answer', () => first.received().split('answered').length === 3)
  const begun = await openMany(3, () => open(''))
  await waitFor('one connection to be closed', () => !idle[1]?.isOpen())
  assert.deepEqual(openStates([...idle, ...begun]), [true, false, true, true, true, true])
})

test('of one client, a connection that never sent a request is closed before idle connections', async (t) => {
  const { open } = await setup(t, fiveConnections, { firstHeadMs: 1 })
  const silent = await open('')
  const lateMs = performance.now() + 10
  const idle = await openMany(4, () => open(completeRequest('/'), 'answered'))
  await waitFor('firstHeadMs to pass', () => performance.now() > lateMs)
  await open(completeRequest('/'), 'answered')
  await waitFor('the silent connection to be closed', () => !silent.isOpen())
  assert.deepEqual(openStates(idle), [true, true, true, true])
})

test('a flood does not close busy and upgraded connections; new connections get a 503', async (t) => {
  const { open } = await setup(t, fiveConnections)
  const waiting = await openMany(3, () => open(completeRequest('/wait'), 'waiting'))
  const upgraded = await openMany(2, () => open(upgradeRequest, 'upgraded'))
  const flood = await openMany(20, () => open(halfRequest))
  for (const client of flood) await waitFor('the refusal', () => !client.isOpen())
  assert.deepEqual(openStates([...waiting, ...upgraded]), [true, true, true, true, true])
  const refused = await open('', 'try again in a moment')
  assert.match(refused.received(), /^HTTP\/1.1 503 [^]*Retry-After: 1\r\n/)
})

test('connections with an unread response or a refused upgrade are closed to admit new clients', async (t) => {
  const { open } = await setup(t, fiveConnections)
  const stalled = await openMany(3, () => open(completeRequest('/large'), 'unread'))
  const refused = upgradeRequest.replace('Host', 'X-Refuse: 1\r\nHost')
  const lingering = await openMany(2, () => open(refused, 'refused'))
  const newer = await openMany(5, () => open(completeRequest('/wait'), 'waiting'))
  assert.deepEqual(openStates(newer), [true, true, true, true, true])
  for (const { socket } of stalled) socket.resume()
  for (const client of [...stalled, ...lingering]) {
    await waitFor('the end', () => !client.isOpen())
  }
})

test('a client above its limit loses its own connections, then gets a 503; others are unaffected', async (t) => {
  const { open } = await setup(t, { maxConnections: 100, maxPerClient: 3 })
  const others = await openMany(2, () => open(halfRequest, '', '127.0.0.2'))
  const greedy = await openMany(10, () => open(halfRequest, '', '127.0.0.3'))
  await waitFor('the limit per client', () => openStates(greedy).filter(Boolean).length === 3)
  assert.deepEqual(openStates(greedy.slice(-3)), [true, true, true])
  const busy = await openMany(3, () => open(completeRequest('/wait'), 'waiting', '127.0.0.3'))
  await open(completeRequest('/'), '503', '127.0.0.3')
  assert.deepEqual(openStates([...others, ...busy]), [true, true, true, true, true])
  const [leaving] = busy
  leaving?.socket.destroy()
  await waitFor('a free connection for this client', async () => {
    const again = await open(completeRequest('/'), 'HTTP/1.1', '127.0.0.3')
    return again.received().includes('answered')
  })
})

test('a connection that sends nothing gets a 408 after the header timeout', async (t) => {
  const timeouts = { headersTimeout: 200, connectionsCheckingInterval: 50 }
  const { open } = await setup(t, fiveConnections, timeouts)
  const silent = await open('', '408 Request Timeout')
  await waitFor('the end', () => !silent.isOpen())
})
