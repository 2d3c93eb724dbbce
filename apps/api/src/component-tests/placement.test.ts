/** Placement of sandboxes on several nodes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'

const token = 'operators-only-token'
const env = { ATOLL_ADMIN_TOKEN: token, ATOLL_TEAM_CONCURRENT_SANDBOXES: '1000' }

async function setUp() {
  const others = [simulateNode(undefined, 'second'), simulateNode(undefined, 'third')]
  const clock = manualClock()
  const api = await startApiUnderTest({ env, others, clock })
  const nodes = [api.node, ...others]
  const isReady = (node: { status: string }) => node.status === 'ready'
  await waitFor('all nodes', async () => {
    const { json } = await callAsOperator(api, 'GET', '/nodes')
    return json.length === nodes.length && json.every(isReady)
  })
  return {
    ...{ api, nodes, clock },
    counts: () => nodes.map(({ running }) => running.size),
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

async function callAsOperator(api: ApiUnderTest, method: string, path: string, body?: unknown) {
  const { status, json } = await api.call(method, path, {
    headers: { 'x-admin-token': token },
    body,
  })
  return { status, json: Object(json) }
}

const createMany = (api: ApiUnderTest, count: number) =>
  Promise.all(Array.from({ length: count }, () => api.create({ timeout: 3600 })))

test('creates spread over the nodes, and each sandbox stays on its node', async () => {
  await using started = await setUp()
  const { api, nodes, counts } = started
  const ids = await createMany(api, 30)
  // Not exactly ten each: a measurement may count a create in progress twice.
  assert.ok(Math.min(...counts()) >= 4, counts().join(' '))
  await api.restart()
  for (const id of ids) {
    assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
    assert.equal(nodes.filter(({ paused }) => paused.has(id)).length, 1)
    await api.call('DELETE', `/sandboxes/${id}`)
  }
  assert.deepEqual(counts(), [0, 0, 0])
})

test('GET /nodes has the counters of each node, and a draining node gets no sandboxes', async () => {
  await using started = await setUp()
  const { api, counts } = started
  assert.equal(
    (await callAsOperator(api, 'POST', '/nodes/third', { status: 'draining' })).status,
    204,
  )
  await createMany(api, 8)
  const [first = 0, second = 0, third = 0] = counts()
  assert.deepEqual([first + second, third], [8, 0])
  const { json } = await callAsOperator(api, 'GET', '/nodes')
  const shown = [...json].map((node: Record<string, unknown>) => [
    ...[node['id'], node['status'], node['sandboxCount'], node['createSuccesses']],
  ])
  assert.deepEqual(shown, [
    ['sim', 'ready', first, first],
    ['second', 'ready', second, second],
    ['third', 'draining', 0, 0],
  ])
})

test('a full node is skipped, and creates fail only when all nodes are full', async () => {
  await using started = await setUp()
  const { api, nodes, counts } = started
  for (const node of nodes.slice(0, 2)) node.failCreates(Code.ResourceExhausted)
  await createMany(api, 5)
  assert.deepEqual(counts(), [0, 0, 5])
  const { json } = await callAsOperator(api, 'GET', '/nodes/sim')
  assert.equal(json.status, 'ready')
  nodes[2]?.failCreates(Code.ResourceExhausted)
  const refused = await api.call('POST', '/v2/sandboxes', { body: { templateID: 'base' } })
  assert.deepEqual(
    [refused.status, Object(refused.json).error_code],
    [503, 'sandbox_capacity_unavailable'],
  )
})

test('a node with failing creates gets no more sandboxes until a probe succeeds', async () => {
  await using started = await setUp()
  const { api, clock, counts, nodes } = started
  api.node.failCreates(Code.Internal)
  const body = { templateID: 'base', timeout: 3600 }
  const results: number[] = []
  for (let round = 0; round < 40; round += 1) {
    results.push((await api.call('POST', '/v2/sandboxes', { body })).status)
  }
  assert.equal(results.filter((status) => status === 500).length, 3)
  assert.equal((await callAsOperator(api, 'GET', '/nodes/sim')).json.status, 'unhealthy')
  assert.equal(counts()[0], 0)

  api.node.failCreates(undefined)
  clock.advance(5)
  await waitFor('a sandbox on the node that works again', async () => {
    await api.create()
    return (nodes[0]?.running.size ?? 0) > 0
  })
  assert.equal((await callAsOperator(api, 'GET', '/nodes/sim')).json.status, 'ready')
})

test('no create fails when a node is unreachable', async () => {
  await using started = await setUp()
  const { api, nodes, counts } = started
  nodes[1]?.failAll(Code.Unavailable)
  await createMany(api, 12)
  assert.equal(counts()[1], 0)
})

test('no create fails when node agents restart', async () => {
  await using started = await setUp()
  const { api, nodes } = started
  for (let round = 0; round < 5; round += 1) {
    // The api learns of the new epochs later: until then the agents refuse its calls.
    for (const node of nodes) node.restartAgent()
    await createMany(api, 6)
  }
})

test('sandboxes of a template or a snapshot start on the node that has its files', async () => {
  await using started = await setUp()
  const { api, nodes } = started
  const id = await api.create({ timeout: 3600 })
  const source = nodes.find(({ running }) => running.has(id))
  const snapshot = await api.call('POST', `/sandboxes/${id}/snapshots`, { body: {} })
  const templateID = String(Object(snapshot.json).snapshotID)
  const copies = await Promise.all(
    Array.from({ length: 6 }, () => api.create({ templateID, timeout: 3600 })),
  )
  for (const copy of copies) assert.ok(source?.running.has(copy))
})
