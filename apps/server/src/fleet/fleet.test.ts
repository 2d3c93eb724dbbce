/** An api, an edge and two nodes over real mutual TLS; the nodes are simulated. */
import assert from 'node:assert/strict'
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { ControlService } from '@atoll/contracts/gen/atoll/control/v1/control_pb'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { silentLogger } from '@atoll/kit/log'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { z } from 'zod'
import { loadServerConfig } from '../config.ts'
import { formatListenAddress } from '../listen-address.ts'
import type { ListenAddress } from '../listen-address.ts'
import { readIdentity } from './identity/identity-file.ts'
import { holdIdentity } from './identity/identity.ts'
import type { StoredIdentity } from './identity/identity-file.ts'
import { joinPart } from './join-part.ts'
import { startApiPart } from './parts/start-api.ts'
import { startEdgePart } from './parts/start-edge.ts'
import { startNodePart } from './parts/start-node.ts'
import { connectPeer } from './peers/transport.ts'

const adminToken = 'operator-token-of-the-test'

async function openFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-fleet-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

function configOf(dataDir: string, env: Record<string, string> = {}) {
  return loadServerConfig({
    ATOLL_DATA_DIR: dataDir,
    ATOLL_LISTEN: '127.0.0.1:0',
    ATOLL_FLEET_LISTEN: '127.0.0.1:0',
    ATOLL_ADMIN_TOKEN: adminToken,
    // Connections that `fetch` keeps open would hold up the end of each part.
    ATOLL_FLEET_DRAIN_SECONDS: '0',
    ...env,
  })
}

/** Ends with the test, or earlier when the test says so. */
function closing<T extends { close(): Promise<void> }>(t: TestContext, part: T): T {
  let closed: Promise<void> | undefined
  const close = () => (closed ??= part.close())
  t.after(close)
  return { ...part, close }
}

async function startFleet(t: TestContext, apiFolder?: string) {
  const dataDir = apiFolder ?? (await openFolder(t))
  const api = closing(t, await startApiPart(configOf(dataDir), silentLogger))
  const apiKey = api.firstCredentials?.apiKey ?? ''
  const call = async (method: string, path: string, body?: unknown) => {
    const reply = await fetch(`${api.url}${path}`, {
      method,
      headers: {
        'X-API-Key': apiKey,
        'X-Admin-Token': adminToken,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    return { status: reply.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }
  const place = formatListenAddress(api.fleetAddress)
  const createToken = async (role: 'edge' | 'node') => {
    const reply = await call('POST', '/fleet/tokens', { role })
    return z.object({ token: z.string() }).parse(reply.body).token
  }
  const joinAs = async (role: 'edge' | 'node', token?: string) => {
    const folder = await openFolder(t)
    const given = token ?? (await createToken(role))
    const id = await joinPart({ role, dataDir: folder, api: place, token: given })
    return { id, folder, identity: await identityOf(folder) }
  }
  return { api, dataDir, call, createToken, joinAs }
}

async function identityOf(folder: string): Promise<StoredIdentity> {
  const identity = await readIdentity(folder)
  assert.ok(identity)
  return identity
}

/** Starts a simulated node. Its sandboxes get addresses of this loopback network. */
async function startNode(t: TestContext, folder: string, network: number) {
  let made = 0
  const { nodeId } = z
    .object({ nodeId: z.string() })
    .parse(JSON.parse(await readFile(join(folder, 'node.json'), 'utf8')))
  const node = simulateNode(() => `127.0.${network}.${(made += 1) + 1}`, nodeId)
  const part = await startNodePart(configOf(folder), {
    log: silentLogger,
    startNode: async () => ({ transport: node.transport, async close() {} }),
  })
  return { node, ...closing(t, part) }
}

function connectAs(
  t: TestContext,
  identity: StoredIdentity,
  to: { readonly role: 'api' | 'node'; readonly address: ListenAddress },
) {
  const { role, address } = to
  const peer = connectPeer({ address, identity: holdIdentity(identity), expected: { role } })
  t.after(() => peer.close())
  return peer.transport
}

async function codeOf(call: Promise<unknown>): Promise<Code | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  )
}

async function serve(t: TestContext, host: string, answer: string): Promise<number> {
  const server = createServer((_, res) => res.end(answer)).listen(0, host)
  await waitFor('the program in the sandbox', () => server.listening)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}

const ListedNodes = z.array(z.object({ id: z.string(), status: z.string() }))

async function waitForNodes(fleet: Awaited<ReturnType<typeof startFleet>>, count: number) {
  await waitFor('the nodes', async () => {
    const { body } = await fleet.call('GET', '/nodes')
    return ListedNodes.parse(body).filter(({ status }) => status === 'ready').length === count
  })
}

test('sandboxes spread over nodes, and an edge reaches them through their node', async (t) => {
  const fleet = await startFleet(t)
  const joined = [await fleet.joinAs('node'), await fleet.joinAs('node')]
  const nodes = await Promise.all(
    joined.map(({ folder }, index) => startNode(t, folder, index + 10)),
  )
  await waitForNodes(fleet, 2)
  const edgeMember = await fleet.joinAs('edge')
  const edge = closing(t, await startEdgePart(configOf(edgeMember.folder), silentLogger))
  const ids: string[] = []
  for (let made = 0; made < 8; made += 1) {
    const { status, body } = await fleet.call('POST', '/sandboxes', { templateID: 'base' })
    assert.equal(status, 201, JSON.stringify(body))
    ids.push(z.object({ sandboxID: z.string() }).parse(body).sandboxID)
  }
  for (const { node } of nodes) assert.ok(node.running.size > 0, 'each node has sandboxes')
  for (const [index, { node }] of nodes.entries()) {
    const [id = ''] = node.running.keys()
    const port = await serve(t, `127.0.${index + 10}.2`, `node ${index}`)
    const reply = await fetch(edge.url, {
      headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': String(port) },
    })
    assert.deepEqual([reply.status, await reply.text()], [200, `node ${index}`])
  }
})

test('a node whose agent takes long to start sends heartbeats, and is ready after the start', async (t) => {
  const fleet = await startFleet(t)
  const { folder, id } = await fleet.joinAs('node')
  const { transport } = simulateNode(undefined, id)
  const { promise: isLet, resolve: letStart } = Promise.withResolvers<void>()
  const config = configOf(folder, { ATOLL_FLEET_LISTEN: `127.0.0.1:${await freePort()}` })
  const starting = startNodePart(config, {
    log: silentLogger,
    startNode: async () => {
      await isLet
      return { transport, async close() {} }
    },
  })
  await waitFor('the first heartbeat', async () => {
    const { body } = await fleet.call('GET', '/nodes')
    return ListedNodes.parse(body).some((node) => node.id === id && node.status === 'connecting')
  })
  letStart()
  closing(t, await starting)
  await waitForNodes(fleet, 1)
})

test('a node with the certificate of another one does not start, and sends no heartbeat', async (t) => {
  const fleet = await startFleet(t)
  const { folder, id } = await fleet.joinAs('node')
  const copy = await openFolder(t)
  await copyFile(join(folder, 'fleet-identity.json'), join(copy, 'fleet-identity.json'))
  const env = { ATOLL_FLEET_LISTEN: `127.0.0.1:${await freePort()}` }
  let starts = 0
  const starting = startNodePart(configOf(copy, env), {
    log: silentLogger,
    async startNode() {
      starts += 1
      return { transport: simulateNode(undefined, id).transport, async close() {} }
    },
  })
  await assert.rejects(starting, { reason: 'fleet_identity' })
  const { body } = await fleet.call('GET', '/nodes')
  assert.deepEqual([starts, body], [0, []])
})

test('a node knows removed members from its early heartbeats, also when no api answers afterwards', async (t) => {
  const fleet = await startFleet(t)
  const { folder, id } = await fleet.joinAs('node')
  const other = await fleet.joinAs('node')
  const [kept, removed] = [await fleet.joinAs('edge'), await fleet.joinAs('edge')]
  assert.equal((await fleet.call('DELETE', `/fleet/members/${removed.id}`)).status, 204)
  const toApi = { role: 'api', address: fleet.api.fleetAddress } as const
  const api = createClient(ControlService, connectAs(t, other.identity, toApi))
  await waitFor('the removal in the answers of the api', async () => {
    const { removedIds } = await api.heartbeat({ address: '127.0.0.1:9' })
    return removedIds.includes(removed.id)
  })
  const address = { host: '127.0.0.1', port: await freePort() }
  const config = configOf(folder, { ATOLL_FLEET_LISTEN: formatListenAddress(address) })
  const part = await startNodePart(config, {
    log: silentLogger,
    async startNode() {
      await waitFor('the early heartbeat', async () => {
        const { body } = await fleet.call('GET', '/nodes')
        return ListedNodes.parse(body).some((node) => node.id === id)
      })
      await fleet.api.close()
      return { transport: simulateNode(undefined, id).transport, async close() {} }
    },
  })
  closing(t, part)
  const callAs = (identity: StoredIdentity) => {
    const client = createClient(NodeService, connectAs(t, identity, { role: 'node', address }))
    return codeOf(client.getNode({}))
  }
  assert.equal(await callAs(kept.identity), undefined)
  assert.notEqual(await callAs(removed.identity), undefined)
})

test('a request waits for a node agent that restarts', async (t) => {
  const fleet = await startFleet(t)
  const { folder } = await fleet.joinAs('node')
  const first = await startNode(t, folder, 20)
  await waitForNodes(fleet, 1)
  const edgeMember = await fleet.joinAs('edge')
  const edge = closing(t, await startEdgePart(configOf(edgeMember.folder), silentLogger))
  const { body } = await fleet.call('POST', '/sandboxes', { templateID: 'base' })
  const id = z.object({ sandboxID: z.string() }).parse(body).sandboxID
  const port = await serve(t, '127.0.20.2', 'still here')
  await first.close()
  const waiting = fetch(edge.url, {
    headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': String(port) },
  })
  const again = await startNodePart(
    configOf(folder, { ATOLL_FLEET_LISTEN: formatListenAddress(first.address) }),
    {
      log: silentLogger,
      startNode: async () => ({ transport: first.node.transport, async close() {} }),
    },
  )
  closing(t, again)
  const reply = await waiting
  assert.deepEqual([reply.status, await reply.text()], [200, 'still here'])
})

test('an api lists a node that has not answered since the start of the api', async (t) => {
  const first = await startFleet(t)
  const { id, folder } = await first.joinAs('node')
  const node = await startNode(t, folder, 60)
  await waitForNodes(first, 1)
  await node.close()
  await first.api.close()
  const { call } = await startFleet(t, first.dataDir)
  const { body } = await call('GET', '/nodes')
  assert.deepEqual(ListedNodes.parse(body), [{ id, status: 'connecting' }])
  assert.equal((await call('POST', `/nodes/${id}`, { status: 'draining' })).status, 204)
  assert.equal((await call('DELETE', `/fleet/members/${id}`)).status, 204)
})

test('a join token works once, for its role, and only with the fleet that made it', async (t) => {
  const fleet = await startFleet(t)
  const other = await startFleet(t)
  const token = await fleet.createToken('node')
  await assert.rejects(fleet.joinAs('edge', token), /not for the role edge/)
  await fleet.joinAs('node', token)
  await assert.rejects(fleet.joinAs('node', token), /wrong, used or expired/)
  const foreign = await other.createToken('node')
  await assert.rejects(fleet.joinAs('node', foreign), /does not belong to the fleet/)
  await assert.rejects(fleet.joinAs('node', `${token.slice(0, -1)}x`), /join token begins with/)
})

test('of many parts with one token, one joins', async (t) => {
  const fleet = await startFleet(t)
  const token = await fleet.createToken('edge')
  const attempts = Array.from({ length: 8 }, () => fleet.joinAs('edge', token))
  const outcomes = await Promise.allSettled(attempts)
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('the role in a certificate decides what it may call', async (t) => {
  const fleet = await startFleet(t)
  const member = await fleet.joinAs('node')
  const node = await startNode(t, member.folder, 30)
  const other = await fleet.joinAs('node')
  const edge = await fleet.joinAs('edge')
  const toNode = { role: 'node', address: node.address } as const
  const toApi = { role: 'api', address: fleet.api.fleetAddress } as const
  const request = { sandboxId: 'stolen', templateId: 'base', cpuCount: 1, memoryMb: 128 }

  const edgeOnNode = createClient(NodeService, connectAs(t, edge.identity, toNode))
  assert.equal(await codeOf(edgeOnNode.createSandbox(request)), Code.PermissionDenied)
  assert.equal(await codeOf(edgeOnNode.listSandboxes({})), Code.PermissionDenied)
  assert.equal(await codeOf(edgeOnNode.getNode({})), undefined)
  const nodeOnNode = createClient(NodeService, connectAs(t, other.identity, toNode))
  assert.equal(await codeOf(nodeOnNode.getNode({})), Code.PermissionDenied)
  const nodeOnApi = createClient(ControlService, connectAs(t, member.identity, toApi))
  assert.equal(await codeOf(nodeOnApi.wakeSandbox({})), Code.PermissionDenied)
  assert.equal(await codeOf(nodeOnApi.listNodes({})), Code.PermissionDenied)
  const unstorable = nodeOnApi.heartbeat({ address: 'a\0b:1' })
  assert.equal(await codeOf(unstorable), Code.InvalidArgument)
  const edgeOnApi = createClient(ControlService, connectAs(t, edge.identity, toApi))
  assert.equal(await codeOf(edgeOnApi.heartbeat({ address: '10.0.0.1:1' })), Code.PermissionDenied)
  assert.equal(await codeOf(edgeOnApi.listNodes({})), undefined)
  assert.equal(node.node.running.size, 0)
})

test('a part of another fleet is refused by the handshake', async (t) => {
  const [fleet, other] = [await startFleet(t), await startFleet(t)]
  const { identity } = await other.joinAs('edge')
  const own = await fleet.joinAs('edge')
  const mixed = { ...identity, authority: own.identity.authority }
  const to = { role: 'api', address: fleet.api.fleetAddress } as const
  const client = createClient(ControlService, connectAs(t, mixed, to))
  assert.equal(await codeOf(client.listNodes({})), Code.Unauthenticated)
})

test('a removed member is refused, and its ID cannot join again', async (t) => {
  const fleet = await startFleet(t)
  const { id, folder, identity } = await fleet.joinAs('node')
  const to = { role: 'api', address: fleet.api.fleetAddress } as const
  const client = createClient(ControlService, connectAs(t, identity, to))
  const beat = () => codeOf(client.heartbeat({ address: '127.0.0.1:9' }))
  assert.equal(await beat(), undefined)
  assert.equal((await fleet.call('DELETE', `/fleet/members/${id}`)).status, 204)
  assert.notEqual(await beat(), undefined)
  assert.notEqual(await codeOf(client.renew({})), undefined)
  assert.equal((await fleet.call('DELETE', `/fleet/members/${id}`)).status, 404)
  await rm(join(folder, 'fleet-identity.json'))
  const again = { role: 'node', dataDir: folder } as const
  const token = await fleet.createToken('node')
  const api = formatListenAddress(fleet.api.fleetAddress)
  await assert.rejects(joinPart({ ...again, api, token }), /was removed less than a day ago/)
})

test('a forgotten node cannot join again with its data directory', async (t) => {
  const fleet = await startFleet(t)
  const [silent, beating] = [await fleet.joinAs('node'), await fleet.joinAs('node')]
  const to = { role: 'api', address: fleet.api.fleetAddress } as const
  const client = createClient(ControlService, connectAs(t, beating.identity, to))
  assert.equal(await codeOf(client.heartbeat({ address: '127.0.0.1:9' })), undefined)
  const forget = (id: string) => fleet.call('POST', `/fleet/members/${id}/forget`)
  assert.equal((await forget(beating.id)).status, 409)
  assert.equal((await forget((await fleet.joinAs('edge')).id)).status, 409)
  await waitFor('the end of its records', async () => {
    const { status, body } = await forget(silent.id)
    assert.equal(status, 200)
    return z.object({ isDone: z.boolean() }).parse(body).isDone
  })
  await rm(join(silent.folder, 'fleet-identity.json'))
  const again = { role: 'node', dataDir: silent.folder } as const
  const token = await fleet.createToken('node')
  const api = formatListenAddress(fleet.api.fleetAddress)
  await assert.rejects(
    joinPart({ ...again, api, token }),
    /removed for good[^]*empty data directory/,
  )
  await fleet.joinAs('node', token)
})
