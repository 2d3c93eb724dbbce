import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { epochHeader, reasonHeader, wrongEpoch } from '@atoll/contracts/node-faults'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { ListenAddress } from '../../listen-address.ts'
import { createAuthority } from '../identity/authority.ts'
import { holdIdentity, issueIdentity } from '../identity/identity.ts'
import { forwardNode } from './forward.ts'
import { startPeerListener } from './listener.ts'
import { connectPeer } from './transport.ts'

const authority = createAuthority(new Date())
const identityOf = (role: 'api' | 'node', id: string) =>
  holdIdentity(issueIdentity(authority, { role, id }, new Date()))

async function startPeer(t: TestContext, port = 0) {
  const node = simulateNode()
  const listener = await startPeerListener({
    listen: { host: '127.0.0.1', port },
    identity: identityOf('node', 'one'),
    log: silentLogger,
    routes: (router) => forwardNode(router, node.transport),
    mayCall: (caller) => caller?.role === 'api',
    isRemoved: () => false,
  })
  let closed: Promise<void> | undefined
  const close = () => (closed ??= listener.close())
  t.after(close)
  return { node, address: listener.address, close }
}

function connect(
  t: TestContext,
  address: ListenAddress,
  options: { id?: string; pingMs?: number },
) {
  const { id = 'one', ...rest } = options
  const expected = { role: 'node', id } as const
  const peer = connectPeer({ address, identity: identityOf('api', 'api'), expected, ...rest })
  t.after(() => peer.close())
  return { ...peer, client: createClient(NodeService, peer.transport) }
}

const codeOf = (error: unknown) => ConnectError.from(error).code

test('a peer that is gone makes calls fail, and works again when it is back', async (t) => {
  const first = await startPeer(t)
  const { client } = connect(t, first.address, {})
  assert.equal((await client.getNode({})).nodeId, 'sim')
  await first.close()
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await assert.rejects(client.getNode({}), (error) => codeOf(error) === Code.Unavailable)
  }
  await startPeer(t, first.address.port)
  await waitFor('the peer', async () => client.getNode({}).then(Boolean, () => false))
})

test('streams end when the peer goes, without an uncaught error', async (t) => {
  const peer = await startPeer(t)
  const { client } = connect(t, peer.address, {})
  const events = client.watchSandboxes({})[Symbol.asyncIterator]()
  assert.equal((await events.next()).done, false)
  const next = events.next()
  await Promise.all([assert.rejects(next), peer.close()])
})

test('a peer with another ID is refused', async (t) => {
  const { address } = await startPeer(t)
  const { client } = connect(t, address, { id: 'two' })
  await assert.rejects(client.getNode({}), /expected node two at this address, and found node one/)
})

test('a session without answers to pings is given up', async (t) => {
  const peer = await startPeer(t)
  const relay = await startRelay(t, peer.address)
  const { client } = connect(t, relay.address, { pingMs: 50 })
  const events = client.watchSandboxes({})[Symbol.asyncIterator]()
  assert.equal((await events.next()).done, false)
  const next = events.next()
  relay.cut()
  await assert.rejects(next)
})

/** Passes bytes on until `cut`; then the connections stay open, and nothing arrives any more. */
async function startRelay(t: TestContext, to: ListenAddress) {
  const sockets: Socket[] = []
  const { connect: dial } = await import('node:net')
  const server = createServer((client) => {
    const upstream = dial(to)
    sockets.push(client, upstream)
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await waitFor('the relay', () => server.listening)
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const bound = server.address()
  assert.ok(bound !== null && typeof bound === 'object')
  return {
    address: { host: '127.0.0.1', port: bound.port },
    cut() {
      for (const socket of sockets) socket.unpipe().pause()
    },
  }
}

test('the reason of a refusal reaches the caller, also of a stream', async (t) => {
  const { node, address } = await startPeer(t)
  node.restartAgent()
  const { client } = connect(t, address, {})
  const options = { headers: { [epochHeader]: '1' } }
  const isRefusal = (error: unknown) => {
    const { code, metadata } = ConnectError.from(error)
    assert.deepEqual([code, metadata.get(reasonHeader)], [Code.FailedPrecondition, wrongEpoch])
    return true
  }
  await assert.rejects(client.getNode({}, options), isRefusal)
  await assert.rejects(async () => {
    for await (const _ of client.watchSandboxes({}, options)) assert.fail('the watch began')
  }, isRefusal)
})
