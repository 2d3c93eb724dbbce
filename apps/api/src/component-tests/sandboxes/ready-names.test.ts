import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

const shape = { templateId: 'base', cpuCount: 3, memoryMb: 512, diskSizeMb: 2048 }
const env = {
  ATOLL_BASE_CPU_COUNT: '3',
  ATOLL_BASE_MEMORY_MB: '512',
  ATOLL_BASE_DISK_SIZE_MB: '2048',
  ATOLL_TEAM_CONCURRENT_SANDBOXES: '1',
}

async function create(api: ApiUnderTest, fields: object = {}, path = '/v2/sandboxes') {
  const { status, json } = await api.call('POST', path, {
    body: { templateID: 'base', ...fields },
  })
  return { status, ...Object(json) }
}

test('a create takes the newest preassigned ID, and each ID only once', async () => {
  await using api = await startApiUnderTest({ env })
  const first = await api.node.stock(shape)
  const second = await api.node.stock(shape)
  for (const { id, accessToken } of [second, first]) {
    const { status, sandboxID, envdAccessToken } = await create(api)
    assert.deepEqual([status, sandboxID, envdAccessToken], [201, id, accessToken])
    assert.equal(api.node.running.get(id)?.accessToken, accessToken)
    await api.call('DELETE', `/sandboxes/${id}`)
  }
  const third = await create(api)
  assert.deepEqual([third.status, [first.id, second.id].includes(third.sandboxID)], [201, false])
})

test('a create with variables or header rules takes no preassigned ID', async () => {
  await using api = await startApiUnderTest({ env })
  const { id } = await api.node.stock(shape)
  await api.node.stock({ ...shape, memoryMb: 1024 })
  const makers = [
    () => create(api, { envVars: { A: '1' } }),
    () => create(api, { secure: false }, '/sandboxes'),
    () => create(api, { network: { rules: { 'a.b': [{ transform: { headers: { a: 'b' } } }] } } }),
  ]
  for (const make of makers) {
    const other = await make()
    assert.deepEqual([other.status, other.sandboxID === id], [201, false])
    await api.call('DELETE', `/sandboxes/${other.sandboxID}`)
  }
  assert.equal((await create(api)).sandboxID, id)
})

test('a create that is refused leaves the name to the next', async () => {
  await using api = await startApiUnderTest({ env })
  const running = await create(api)
  const { id } = await api.node.stock(shape)
  assert.equal((await create(api)).status, 429)
  await api.call('DELETE', `/sandboxes/${running.sandboxID}`)
  assert.equal((await create(api)).sandboxID, id)
})

test('a preassigned ID whose cell is gone is not used again', async () => {
  await using api = await startApiUnderTest({ env })
  const { id } = await api.node.stock(shape)
  api.node.unstock(id)
  const { status, sandboxID } = await create(api)
  assert.deepEqual([status, sandboxID === id, api.node.running.has(id)], [201, false, false])
  assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 404)
  const metrics = await api.call('GET', '/v2/sandboxes')
  assert.deepEqual(
    Object(metrics.json).map((one: { sandboxID: string }) => one.sandboxID),
    [sandboxID],
  )
})

test('IDs are offered again to a node that did not answer, and creates work meanwhile', async () => {
  await using api = await startApiUnderTest({ env })
  api.node.fail('name', Code.Unavailable)
  await assert.doesNotReject(api.restart())
  assert.equal((await create(api)).status, 201)
  await api.call('DELETE', `/sandboxes/${[...api.node.running.keys()][0]}`)
  api.node.fail('name', undefined)
  const { id } = await api.node.stock(shape)
  assert.equal((await create(api)).sandboxID, id)
})
