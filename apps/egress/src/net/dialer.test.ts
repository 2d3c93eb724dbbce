import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { compileRules } from '../domain/egress-rules.ts'
import type { Route } from '../domain/route.ts'
import { startTestDnsServer } from '../testing/dns-server.ts'
import { createDialer } from './dialer.ts'
import { createHostAddresses } from './host-addresses.ts'

async function listen(
  t: { after(fn: () => void): void },
  handle: (socket: Socket) => void,
): Promise<number> {
  const server = createServer(handle)
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  t.after(() => void server.close())
  const bound = server.address()
  return bound !== null && typeof bound === 'object' ? bound.port : 0
}

/** DNS name with several addresses. The server at each address replies with that address. */
async function setup(t: { after(fn: () => void): void }, addresses = ['127.0.0.2', '127.0.0.3']) {
  const names = await startTestDnsServer(t, addresses)
  const port = await listen(t, (socket) => socket.end(socket.localAddress ?? ''))
  const dialer = (closedRanges: string[]) =>
    createDialer({ nameservers: [names.address], closedRanges })

  return async (denyOut: string[], closedRanges: string[] = []) => {
    const rules = { allowOut: [], denyOut, allowNames: [] }
    const route: Route = {
      verdict: { kind: 'byAddress' },
      proxy: undefined,
      transform: {
        name: 'api.example.com',
        protocol: 'http',
        headers: {},
        authority: { certificate: '', key: '' },
        within: compileRules(rules, []),
      },
    }
    const destination = { address: '127.0.0.4', port }
    const { socket } = await dialer(closedRanges).dial(
      route,
      destination,
      new AbortController().signal,
    )
    const [said]: Buffer[] = await once(socket, 'data')
    socket.destroy()
    return String(said)
  }
}

test('a connection with header rules is dialed by name, not at its original destination', async (t) => {
  const dial = await setup(t)
  assert.equal(await dial([]), '127.0.0.2')
})

test('addresses of a name that the sandbox may not reach are skipped', async (t) => {
  const dial = await setup(t)
  assert.equal(await dial(['127.0.0.2']), '127.0.0.3')
  const nowhere = { message: 'api.example.com has no IPv4 address that this sandbox may reach' }
  await assert.rejects(dial(['127.0.0.2/31']), nowhere)
  await assert.rejects(dial(['127.0.0.2'], ['127.0.0.3']), nowhere)
})

test('an allowed address is found after several denied ones', async (t) => {
  const dial = await setup(t, ['127.0.0.2', '127.0.0.3', '127.0.0.5', '127.0.0.6', '127.0.0.7'])
  assert.equal(await dial(['127.0.0.0/30', '127.0.0.4/31']), '127.0.0.6')
})

test('host interfaces are not listed again for each connection', async (t) => {
  const port = await listen(t, (socket) => void socket.on('error', () => {}))
  let reads = 0
  const hostAddresses = createHostAddresses(
    () => {
      reads += 1
      return {}
    },
    () => 0,
  )
  const dialer = createDialer({ nameservers: [], closedRanges: [], hostAddresses })
  const { signal } = new AbortController()
  for (let round = 0; round < 3; round += 1) {
    const { socket } = await dialer.dial(plain, { address: '127.0.0.2', port }, signal)
    socket.destroy()
  }
  assert.equal(reads, 1)
})

const plain: Route = { verdict: { kind: 'byAddress' }, proxy: undefined }

/** SOCKS5 proxy that replies with the destination exactly as requested (RFC 1928, 4). */
function openProxy(t: { after(fn: () => void): void }): Promise<number> {
  return listen(t, (socket) => {
    socket.once('data', () => {
      socket.write(Buffer.from([5, 0]))
      socket.once('data', (request) => {
        socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
        const [byAddress, byName] = [request[3] === 1, request[3] === 3]
        if (byAddress) socket.end(request.subarray(4, 8).join('.'))
        else socket.end(byName ? request.subarray(5, -2) : 'neither')
      })
    })
  })
}

test('a proxy gets an allowed address, or the name if the name is allowed', async (t) => {
  const names = await startTestDnsServer(t, ['127.0.0.2', '127.0.0.3', '127.0.0.5'])
  const dialer = createDialer({ nameservers: [names.address], closedRanges: [] })
  const proxy = { address: `127.0.0.9:${await openProxy(t)}` }
  const ask = async (address: string, denyOut?: string[]) => {
    const rules = denyOut && compileRules({ allowOut: [], denyOut, allowNames: [] }, [])
    const transform = {
      name: 'api.example.com',
      protocol: 'http' as const,
      headers: {},
      authority: { certificate: '', key: '' },
      ...(rules && { within: rules }),
    }
    const { socket, initialBytes } = await dialer.dial(
      { verdict: { kind: 'byAddress' }, proxy, transform },
      { address, port: 80 },
      new AbortController().signal,
    )
    const said = String(initialBytes) + (await text(socket))
    socket.destroy()
    return said
  }
  assert.equal(await ask('9.9.9.9'), 'api.example.com')
  assert.equal(await ask('9.9.9.9', []), '127.0.0.2')
  assert.equal(await ask('9.9.9.9', ['127.0.0.2']), '127.0.0.3')
  // Prefers the address that the sandbox dialed, so a client that tries one address after the other makes progress.
  assert.equal(await ask('127.0.0.5', ['127.0.0.2']), '127.0.0.5')
  assert.equal(await ask('127.0.0.2', ['127.0.0.2']), '127.0.0.3')
  await assert.rejects(ask('9.9.9.9', ['127.0.0.0/8']), {
    message: 'api.example.com has no IPv4 address that this sandbox may reach',
  })
})
