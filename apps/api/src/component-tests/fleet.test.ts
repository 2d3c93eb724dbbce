/** Several nodes on one store: each record is compared with its own node only. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedNode } from '@atoll/simulated-node/node'
import { Code, createClient } from '@connectrpc/connect'
import { sql } from 'kysely'
import { openDatabase } from '../db/stores.ts'
import { startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'
import { build } from '../sim/build-client.ts'

const token = 'operators-only-token'
const env = { ATOLL_ADMIN_TOKEN: token }

async function setUpTwoNodes() {
  const other = simulateNode(undefined, 'other')
  const api = await startApiUnderTest({ env, others: [other] })
  return {
    api,
    other,
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
    },
  }
}

async function createOn(api: ApiUnderTest, node: SimulatedNode): Promise<string> {
  await drainOthers(api, node)
  return api.create({ timeout: 3600 })
}

async function drainOthers(api: ApiUnderTest, { nodeId }: SimulatedNode): Promise<void> {
  for (const id of ['sim', 'other']) {
    const status = id === nodeId ? 'ready' : 'draining'
    const options = { headers: { 'x-admin-token': token }, body: { status } }
    assert.equal((await api.call('POST', `/nodes/${id}`, options)).status, 204)
  }
}

async function statusOf(api: ApiUnderTest, id: string): Promise<number> {
  return (await api.call('GET', `/sandboxes/${id}`)).status
}

test('a record is not ended because another node lacks its sandbox', async () => {
  await using started = await setUpTwoNodes()
  const { api, other } = started
  const [here, there] = [await createOn(api, api.node), await createOn(api, other)]
  assert.deepEqual([[...api.node.running.keys()], [...other.running.keys()]], [[here], [there]])
  await api.restart()
  assert.deepEqual([await statusOf(api, here), await statusOf(api, there)], [200, 200])

  other.failAll(Code.Unavailable)
  await api.restart()
  assert.deepEqual([await statusOf(api, here), await statusOf(api, there)], [200, 200])
  assert.equal((await api.call('POST', `/sandboxes/${here}/pause`)).status, 204)
  const paused = await api.call('POST', `/sandboxes/${there}/pause`)
  assert.equal(paused.status, 503)
  assert.match(paused.text, /The node of the sandbox does not answer/)

  other.failAll(undefined)
  await waitFor('the other node', async () => {
    return (await api.call('POST', `/sandboxes/${there}/pause`)).status === 204
  })
  assert.deepEqual([[...api.node.paused.keys()], [...other.paused.keys()]], [[here], [there]])
  await api.call('DELETE', `/sandboxes/${there}`)
  assert.deepEqual([api.node.killed, other.killed], [[], [there]])
})

test('a kill is accepted while the node does not answer, and carried out when it is back', async () => {
  await using started = await setUpTwoNodes()
  const { api, other } = started
  const id = await createOn(api, other)
  other.failAll(Code.Unavailable)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  assert.deepEqual([await statusOf(api, id), other.killed], [404, []])
  other.failAll(undefined)
  await waitFor('the sandbox to be killed', () => other.killed.includes(id))
  assert.deepEqual([...other.running.keys()], [])
})

test('sandboxes that only an unreachable node could pause do not hold up the end of others', async () => {
  await using started = await setUpTwoNodes()
  const { api, other } = started
  const [here, there] = [await createOn(api, api.node), await createOn(api, other)]
  const lists = await api.withStores(async ({ sandboxes }) => {
    const endAt = new Date(Date.now() - 1000)
    for (const id of [here, there]) {
      await sandboxes.update(id, (current) => ({
        ...current,
        endAt,
        lifecycle: { ...current.lifecycle, autoPause: true },
      }))
    }
    const reach = [['sim', 'other'], ['sim'], []]
    return Promise.all(
      reach.map(async (nodeIds) => [
        (await sandboxes.listExpired(new Date(), 100, nodeIds)).toSorted(),
        (await sandboxes.nextEnd(nodeIds))?.getTime(),
      ]),
    )
  })
  assert.deepEqual(
    lists.map(([ids]) => ids),
    [[here, there].toSorted(), [here], []],
  )
  assert.equal(lists[2]?.[1], undefined)
})

test('copies, forks and logs stay on the node of their sandbox', async () => {
  await using started = await setUpTwoNodes()
  const { api, other } = started
  const there = await createOn(api, other)
  const forks = await api.call('POST', `/sandboxes/${there}/fork`, { body: { count: 1 } })
  assert.equal(forks.status, 201, forks.text)
  assert.deepEqual([api.node.running.size, other.running.size], [0, 2])
  assert.equal((await api.call('POST', `/sandboxes/${there}/snapshots`, { body: {} })).status, 201)
  assert.deepEqual([api.node.snapshots.size, other.snapshots.size], [0, 1])
  assert.equal((await api.call('GET', `/sandboxes/${there}/logs`)).status, 200)
})

test('after a restart of the agent, records end only once the store knows its epoch', async () => {
  await using api = await startApiUnderTest()
  const [kept, lost] = [await api.create({ timeout: 3600 }), await api.create({ timeout: 3600 })]
  api.node.end(lost, '', 'silently')
  api.node.restartAgent()
  await waitFor('the end of the lost one', async () => (await statusOf(api, lost)) === 404)
  assert.match((await api.call('GET', `/sandboxes/${lost}`)).text, /its node does not have it/)
  assert.equal(await statusOf(api, kept), 200)
  assert.equal((await api.call('POST', `/sandboxes/${kept}/pause`)).status, 204)
  await waitFor('the watch again', () => api.node.watchers === 1)
})

test('an agent on a copy or an old backup of the data of its node ends no records', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  api.node.restartAgent()
  await api.restart()
  await api.stop()
  for (const epoch of [1, 2]) {
    api.node.impersonate('sim', epoch)
    const held = api.node.running.get(id) ?? assert.fail('it is gone')
    api.node.end(id, '', 'silently')
    await api.restart()
    assert.equal(await statusOf(api, id), 200)
    assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 503)
    const body = { templateID: 'base' }
    assert.equal((await api.call('POST', '/v2/sandboxes', { body })).status, 503)
    api.node.start(id, held.address)
    await api.stop()
  }
  api.node.impersonate('sim', 3)
  await api.restart()
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
})

test('another node at the address of a node ends no records', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  await api.stop()
  const held = api.node.running.get(id) ?? assert.fail('it is gone')
  api.node.end(id, '', 'silently')
  api.node.impersonate('another', 1)
  await api.restart()
  assert.equal(await statusOf(api, id), 200)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  const created = await api.create()
  assert.ok(api.node.running.has(created))
  api.node.start(id, held.address)
  api.node.impersonate('sim', 2)
  await api.restart()
  await waitFor('the interrupted kill', () => !api.node.running.has(id))
})

test('every start has a new generation, and calls for an older one are refused', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  const client = createClient(NodeService, api.node.transport)
  const generation = () => api.node.running.get(id)?.generation
  assert.equal(generation(), 1)
  for (const next of [2, 3]) {
    await api.call('POST', `/sandboxes/${id}/pause`)
    await api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 3600 } })
    assert.equal(generation(), next)
  }
  await assert.rejects(client.killSandbox({ sandboxId: id, generation: 2 }), /generation 3/)
  assert.equal(await statusOf(api, id), 200)
})

test('a store from a backup takes over the newer generation of the node', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  await api.call('POST', `/sandboxes/${id}/pause`)
  await api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 3600 } })
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({ ...current, generation: 1 })),
  )
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  await api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 3600 } })
  assert.equal(api.node.running.get(id)?.generation, 3)
})

test('a sandbox that was started again elsewhere ends on its old node, and its record stays', async () => {
  await using started = await setUpTwoNodes()
  const { api, other } = started
  const id = await createOn(api, api.node)
  const { templateId, cpuCount, memoryMb, diskSizeMb } = api.node.running.get(id) ?? assert.fail()
  const shape = { templateId, cpuCount, memoryMb, diskSizeMb }
  await api.stop()
  const elsewhere = createClient(NodeService, other.transport)
  await elsewhere.createSandbox({ ...shape, sandboxId: id, generation: 2 })
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({ ...current, nodeId: 'other', generation: 2 })),
  )
  await waitFor('the end on the old node', () => !api.node.running.has(id))
  await api.restart()
  assert.equal(await statusOf(api, id), 200)
  assert.ok(other.running.has(id))
})

for (const which of ['first', 'second'] as const) {
  test(`the first build of a team avoids a drained node: only the ${which} takes new sandboxes`, async () => {
    await using started = await setUpTwoNodes()
    const { api, other } = started
    const [ready, drained] = which === 'first' ? [api.node, other] : [other, api.node]
    await drainOthers(api, ready)
    await build(api, { name: 'ours' })
    assert.deepEqual([ready.builds.templates.size, drained.builds.templates.size], [1, 0])
    // Later builds need the layers of the first one.
    await drainOthers(api, drained)
    await build(api, { name: 'ours-too' })
    assert.deepEqual([ready.builds.templates.size, drained.builds.templates.size], [2, 0])
  })
}

test('the only node claims the records of an old Atoll version, and keeps its status', async () => {
  await using api = await startApiUnderTest({ env })
  const id = await api.create({ timeout: 3600 })
  await api.stop()
  const { db } = openDatabase(api.store.location)
  await sql`update sandboxes set node_id = null, generation = 0`.execute(db)
  await sql`update nodes set id = 'host', status = 'draining', epoch = null`.execute(db)
  await db.destroy()
  await api.restart()
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  const options = { headers: { 'x-admin-token': token } }
  const { json } = await api.call('GET', '/nodes/sim', options)
  assert.equal(Object(json).status, 'draining')
})
