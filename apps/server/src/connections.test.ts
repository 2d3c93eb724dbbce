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

const whole = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const half = 'GET / HTTP/1.1\r\nHost: loc'
const upgrade = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n'
const large = Buffer.alloc(64 * 1024 * 1024)

interface Client {
  readonly socket: Socket
  received(): string
  isOpen(): boolean
}

/** Starts a server with these limits. `/wait` never ends its response; `/large` sends more than the kernel buffers. */
async function setup(
  t: TestContext,
  limits: ConnectionLimits,
  options: ServerOptions & { readonly firstHeadMs?: number } = {},
) {
  const { firstHeadMs = 600_000 } = options
  // Loopback addresses act as other machines.
  const connections = createConnections(limits, { isExempt: () => false, firstHeadMs })
  const place = { setting: 'ATOLL_LISTEN', address: { host: '127.0.0.1', port: 0 } }
  const listener = await startListener(place, options, {
    connections,
    handle(req, res) {
      if (req.url === '/large') res.end(large)
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

async function openMany(many: number, open: () => Promise<Client>): Promise<Client[]> {
  const clients: Client[] = []
  for (let made = 0; made < many; made += 1) clients.push(await open())
  return clients
}

const openOf = (clients: readonly Client[]) => clients.map(({ isOpen }) => isOpen())
const five = { mostConnections: 5, mostPerClient: 5 }

test('half-sent requests do not keep a new client out: the oldest makes way', async (t) => {
  const { open } = await setup(t, five)
  const flood = await openMany(5, () => open(half))
  await open(whole('/'), 'answered')
  await waitFor('the oldest to go', () => flood[0]?.isOpen() === false)
  assert.deepEqual(openOf(flood), [false, true, true, true, true])
})

for (const [kind, text, awaited] of [
  ['half-sent requests', half, ''],
  ['idle connections', whole('/'), 'answered'],
] as const) {
  test(`a flood of ${kind} from one address replaces its own, not what others have just opened`, async (t) => {
    const { open } = await setup(t, { mostConnections: 5, mostPerClient: 100 })
    const others = await openMany(2, () => open('', '', '127.0.0.2'))
    const flood = await openMany(50, () => open(text, awaited, '127.0.0.3'))
    await waitFor('room', () => openOf(flood).filter(Boolean).length === 3)
    for (const other of others) {
      other.socket.write(whole('/'))
      await waitFor('the answer', () => other.received().includes('answered'))
    }
  })
}

test('of one client, the longest idle connection makes way, before those that have just begun', async (t) => {
  const { open } = await setup(t, five)
  const idle = await openMany(3, () => open(whole('/'), 'answered'))
  const first = idle[0] ?? assert.fail()
  first.socket.write(whole('/again'))
  await waitFor('the second answer', () => first.received().split('answered').length === 3)
  const begun = await openMany(3, () => open(''))
  await waitFor('room', () => !idle[1]?.isOpen())
  assert.deepEqual(openOf([...idle, ...begun]), [true, false, true, true, true, true])
})

test('of one client, a connection that has sent no request for a while goes before idle ones', async (t) => {
  const { open } = await setup(t, five, { firstHeadMs: 1 })
  const silent = await open('')
  const late = performance.now() + 10
  const idle = await openMany(4, () => open(whole('/'), 'answered'))
  await waitFor('a while', () => performance.now() > late)
  await open(whole('/'), 'answered')
  await waitFor('room', () => !silent.isOpen())
  assert.deepEqual(openOf(idle), [true, true, true, true])
})

test('requests under way and upgraded connections outlast a flood, and newcomers are told', async (t) => {
  const { open } = await setup(t, five)
  const waiting = await openMany(3, () => open(whole('/wait'), 'waiting'))
  const upgraded = await openMany(2, () => open(upgrade, 'upgraded'))
  const flood = await openMany(20, () => open(half))
  for (const client of flood) await waitFor('the refusal', () => !client.isOpen())
  assert.deepEqual(openOf([...waiting, ...upgraded]), [true, true, true, true, true])
  const refused = await open('', 'try again in a moment')
  assert.match(refused.received(), /^HTTP\/1.1 503 [^]*Retry-After: 1\r\n/)
})

test('clients that do not take their answer, or stay after a refused upgrade, make way', async (t) => {
  const { open } = await setup(t, five)
  const stalled = await openMany(3, () => open(whole('/large'), 'unread'))
  const refused = upgrade.replace('Host', 'X-Refuse: 1\r\nHost')
  const lingering = await openMany(2, () => open(refused, 'refused'))
  const late = await openMany(5, () => open(whole('/wait'), 'waiting'))
  assert.deepEqual(openOf(late), [true, true, true, true, true])
  for (const { socket } of stalled) socket.resume()
  for (const client of [...stalled, ...lingering]) {
    await waitFor('the end', () => !client.isOpen())
  }
})

test('one client takes no more than its share, and pays for it alone', async (t) => {
  const { open } = await setup(t, { mostConnections: 100, mostPerClient: 3 })
  const others = await openMany(2, () => open(half, '', '127.0.0.2'))
  const greedy = await openMany(10, () => open(half, '', '127.0.0.3'))
  await waitFor('the share', () => openOf(greedy).filter(Boolean).length === 3)
  assert.deepEqual(openOf(greedy.slice(-3)), [true, true, true])
  const busy = await openMany(3, () => open(whole('/wait'), 'waiting', '127.0.0.3'))
  await open(whole('/'), '503', '127.0.0.3')
  assert.deepEqual(openOf([...others, ...busy]), [true, true, true, true, true])
  const [leaving] = busy
  leaving?.socket.destroy()
  await waitFor('room for that client', async () => {
    const again = await open(whole('/'), 'HTTP/1.1', '127.0.0.3')
    return again.received().includes('answered')
  })
})

test('a connection that sends nothing is ended after a time', async (t) => {
  const timeouts = { headersTimeout: 200, connectionsCheckingInterval: 50 }
  const { open } = await setup(t, five, timeouts)
  const silent = await open('', '408 Request Timeout')
  await waitFor('the end', () => !silent.isOpen())
})
