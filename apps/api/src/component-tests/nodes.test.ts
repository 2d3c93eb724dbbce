import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterId } from '@atoll/contracts/nodes'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'

const token = 'operators-only-token'
const env = { ATOLL_ADMIN_TOKEN: token }

async function callAsOperator(api: ApiUnderTest, method: string, path: string, body?: unknown) {
  const headers = { 'x-admin-token': token }
  const { status, json } = await api.call(method, path, { headers, body })
  return { status, json: Object(json) }
}

test('GET /nodes/:id returns status, counters, pools and metrics of the node', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock, env })
  const startedAt = clock.now().toISOString()
  const ids = await Promise.all([api.create(), api.create(), api.create()])
  await api.call('POST', `/sandboxes/${ids[0]}/pause`)
  api.node.failCreates(Code.Internal)
  await assert.rejects(api.create(), /500/)
  const { status, json } = await callAsOperator(api, 'GET', '/nodes/sim')
  assert.equal(status, 200)
  assert.deepEqual(json, {
    id: 'sim',
    serviceInstanceID: 'a1b2',
    clusterID: clusterId,
    status: 'ready',
    statusChangedAt: startedAt,
    sandboxCount: 2,
    sandboxPausedCount: 1,
    pools: [{ templateID: 'base', ready: 1, target: 2 }],
    snapshotPools: [{ snapshotID: 's1', ready: 1, target: 1 }],
    metrics: {
      allocatedCPU: 4,
      cpuPercent: 13,
      cpuCount: 4,
      allocatedMemoryBytes: 2 * 1024 ** 3,
      memoryUsedBytes: 2 ** 33,
      memoryTotalBytes: 2 ** 34,
      hugePagesTotal: 8,
      hugePagesUsed: 3,
      hugePagesReserved: 1,
      hugePageSizeBytes: 2 ** 21,
      disks: [
        {
          mountPoint: '/data',
          device: '/dev/sim',
          filesystemType: 'ext4',
          usedBytes: 5,
          totalBytes: 10,
        },
      ],
    },
    createSuccesses: 3,
    createFails: 1,
    version: '9.8.7',
    commit: '',
    machineInfo: { cpuArchitecture: 'x86_64', cpuFamily: '6', cpuModel: '85', cpuModelName: 'Sim' },
  })
  const listed = await callAsOperator(api, 'GET', `/nodes?clusterID=${clusterId}`)
  assert.deepEqual(listed.json, [{ ...json, sandboxStartingCount: 0 }])
  const otherCluster = await callAsOperator(api, 'GET', `/nodes?clusterID=${crypto.randomUUID()}`)
  assert.deepEqual(otherCluster.json, [])
})

test('a draining node takes no new sandboxes, even after an API restart, until it is set to ready', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock, env })
  const id = await api.create()
  clock.advance(60)
  const drainedAt = clock.now().toISOString()
  const drained = await callAsOperator(api, 'POST', '/nodes/sim', { status: 'draining' })
  assert.equal(drained.status, 204)
  const body = { templateID: 'base' }
  for (const _ of [1, 2]) {
    const refused = await api.call('POST', '/v2/sandboxes', { body })
    assert.deepEqual(
      [refused.status, Object(refused.json).error_code],
      [503, 'sandbox_capacity_unavailable'],
    )
    assert.match(Object(refused.json).message, /draining/)
    assert.equal((await callAsOperator(api, 'GET', '/nodes/sim')).json.statusChangedAt, drainedAt)
    assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 200)
    await api.restart()
  }
  clock.advance(60)
  assert.equal((await callAsOperator(api, 'POST', '/nodes/sim', { status: 'ready' })).status, 204)
  await api.create()
  const { json } = await callAsOperator(api, 'GET', '/nodes/sim')
  assert.deepEqual([json.status, json.statusChangedAt], ['ready', clock.now().toISOString()])
})

test('a node that stops responding is unhealthy; after an API restart it is not listed', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock, env })
  assert.equal((await callAsOperator(api, 'GET', '/nodes/sim')).json.status, 'ready')
  clock.advance(60)
  api.node.failAll(Code.Unavailable)
  const { json } = await callAsOperator(api, 'GET', '/nodes/sim')
  assert.deepEqual([json.status, json.statusChangedAt], ['unhealthy', clock.now().toISOString()])
  await api.restart()
  assert.deepEqual((await callAsOperator(api, 'GET', '/nodes')).json, [])
  assert.equal((await callAsOperator(api, 'GET', '/nodes/sim')).status, 404)
})

const invalidRequests: readonly (readonly [string, string, unknown, number, RegExp])[] = [
  ['GET', '/nodes?clusterID=7', undefined, 400, /query\.clusterID: must be a UUID/],
  ['GET', '/nodes?clusterID=', undefined, 400, /query\.clusterID/],
  ['GET', '/nodes/other', undefined, 404, /There is no node other/],
  ['GET', '/nodes/%00', undefined, 400, /path\.nodeID/],
  ['GET', `/nodes/${'x'.repeat(300)}`, undefined, 400, /path\.nodeID/],
  ['GET', '/nodes/sim?clusterID=7', undefined, 400, /query\.clusterID/],
  ['GET', `/nodes/sim?clusterID=${crypto.randomUUID()}`, undefined, 404, /There is no cluster/],
  ['POST', '/nodes/other', { status: 'ready' }, 404, /There is no node other/],
  ['POST', '/nodes/sim', '', 400, /body: is required/],
  ['POST', '/nodes/sim', {}, 400, /body\.status/],
  ['POST', '/nodes/sim', { status: 'asleep' }, 400, /body\.status/],
  ['POST', '/nodes/sim', { status: 1 }, 400, /body\.status/],
  ['POST', '/nodes/sim', { status: 'ready', clusterID: 'x' }, 400, /body\.clusterID/],
  ['POST', '/nodes/sim', { status: 'unhealthy' }, 409, /cannot be set to unhealthy/],
  ['POST', '/nodes/sim', { status: 'connecting' }, 409, /cannot be set to connecting/],
]

test('invalid requests get the right status, and the message names the field', async () => {
  await using api = await startApiUnderTest({ env })
  for (const [method, path, body, status, message] of invalidRequests) {
    const reply = await callAsOperator(api, method, path, body)
    assert.deepEqual([reply.status, reply.json.code], [status, status], `${method} ${path}`)
    assert.match(reply.json.message, message)
  }
})
