import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Kept-disk quota of a team: paused sandboxes and snapshots together. */

const mebibyte = 1024n * 1024n

/** Starts an API with a kept-disk quota. */
async function setup(limitMb = 100) {
  const clock = manualClock()
  const api = await startApiUnderTest({
    clock,
    env: { ATOLL_TEAM_KEPT_DISK_MB: String(limitMb), ATOLL_ADMIN_TOKEN: 'operators-only-token' },
  })
  /** Creates a running sandbox with this disk and memory usage. */
  const open = async (diskMb: bigint, memoryMb: bigint, fields: object = {}) => {
    const id = await api.create(fields)
    const diskUsedBytes = diskMb * mebibyte
    api.node.setUsage(id, { diskUsedBytes, memoryUsedBytes: memoryMb * mebibyte })
    return id
  }
  return { api, clock, open }
}

const pause = (api: ApiUnderTest, id: string, body: object = {}) =>
  api.call('POST', `/sandboxes/${id}/pause`, { body })
const snapshot = (api: ApiUnderTest, id: string) =>
  api.call('POST', `/sandboxes/${id}/snapshots`, { body: {} })
const stateOf = async (api: ApiUnderTest, id: string) =>
  Object((await api.call('GET', `/sandboxes/${id}`)).json).state

test('a pause beyond the disk limit of the team is refused before it begins, with the numbers', async () => {
  const { api, open } = await setup()
  await using _ = api
  const first = await open(40n, 20n)
  assert.equal((await pause(api, first)).status, 204)
  const second = await open(30n, 11n)
  const { status, json } = await pause(api, second)
  assert.deepEqual([status, Object(json).code], [429, 429])
  assert.match(Object(json).message, /take 60 MiB, and its limit is 100 MiB: delete some/)
  assert.deepEqual([await stateOf(api, second), api.node.begun('pause')], ['running', 1])
  // The files alone fit into the quota.
  assert.equal((await pause(api, second, { memory: false })).status, 204)
  assert.equal((await pause(api, first)).status, 409)
  const third = await open(11n, 0n)
  assert.equal((await pause(api, third)).status, 429)
  // Resumed and killed sandboxes do not count towards the quota.
  assert.equal((await api.call('POST', `/v2/sandboxes/${first}/connect`)).status, 201)
  assert.equal((await pause(api, third)).status, 204)
  await api.call('DELETE', `/sandboxes/${second}`)
  assert.equal((await pause(api, first)).status, 204)
})

test('snapshots and forks count towards the disk limit until they are deleted', async () => {
  const { api, open } = await setup()
  await using _ = api
  const id = await open(30n, 20n)
  const taken = await snapshot(api, id)
  assert.equal(taken.status, 201)
  assert.equal((await snapshot(api, id)).status, 201)
  for (const reply of [
    await snapshot(api, id),
    await pause(api, id),
    await api.call('POST', `/sandboxes/${id}/fork`, { body: {} }),
  ]) {
    assert.deepEqual([reply.status, Object(reply.json).code], [429, 429])
    assert.match(Object(reply.json).message, /take 100 MiB, and its limit is 100 MiB/)
  }
  assert.deepEqual([await stateOf(api, id), api.node.snapshots.size], ['running', 2])
  const reference = encodeURIComponent(Object(taken.json).snapshotID)
  assert.equal((await api.call('DELETE', `/templates/${reference}`)).status, 204)
  await waitFor('the copy to go', () => api.node.snapshots.size === 1)
  const forked = await api.call('POST', `/sandboxes/${id}/fork`, { body: {} })
  assert.equal(forked.status, 201)
  // The temporary copy for a fork is deleted after the answer, and no longer counts.
  await waitFor('room for the pause', async () => (await pause(api, id)).status === 204)
})

test('only sandboxes that are paused or copied are measured', async () => {
  const { api, open } = await setup()
  await using _ = api
  await open(50n, 60n)
  const [first, second] = [await open(30n, 20n), await open(30n, 20n)]
  assert.equal((await pause(api, first)).status, 204)
  assert.equal((await snapshot(api, second)).status, 201)
  assert.deepEqual(api.node.sampledAlone, [first, second])
})

test('of many pauses at a time no more succeed than the team may keep', async () => {
  const { api, open } = await setup()
  await using _ = api
  const ids = await Promise.all(Array.from({ length: 6 }, () => open(20n, 10n)))
  const replies = await Promise.all(ids.map((id) => pause(api, id)))
  const statuses = replies.map(({ status }) => status).toSorted((a, b) => a - b)
  assert.deepEqual(statuses, [204, 204, 204, 429, 429, 429])
})

test('a pause that failed takes nothing', async () => {
  const { api, open } = await setup()
  await using _ = api
  const id = await open(60n, 20n)
  api.node.fail('pause', Code.Internal)
  assert.equal((await pause(api, id)).status, 500)
  api.node.fail('pause', undefined)
  assert.equal((await pause(api, id)).status, 204)
})

test('at the end of its time a sandbox past the limit keeps its files, and no more such are begun', async () => {
  const { api, clock, open } = await setup()
  await using _ = api
  const lifecycle = { timeout: 10, autoPause: true }
  const [first, second] = [await open(60n, 20n, lifecycle), await open(70n, 20n, lifecycle)]
  clock.advance(10)
  await waitFor('both pauses', () => api.node.paused.size === 2)
  const kept = [first, second].map((id) => api.node.paused.get(id)?.keepsMemory)
  assert.deepEqual(new Set(kept), new Set([false, true]))
  await waitFor('both records', async () => {
    const states = await Promise.all([first, second].map((id) => stateOf(api, id)))
    return states.every((state) => state === 'paused')
  })
  const create = async (fields: object) => {
    const body = { templateID: 'base', ...fields }
    return (await api.call('POST', '/v2/sandboxes', { body })).status
  }
  assert.deepEqual([await create(lifecycle), await create({})], [429, 201])
  assert.deepEqual(api.node.killed, [])
  // Kept sandboxes can still be resumed and deleted.
  assert.equal((await api.call('POST', `/v2/sandboxes/${first}/connect`)).status, 201)
  await api.call('DELETE', `/sandboxes/${first}`)
  assert.equal(await create(lifecycle), 201)
})

test('a team may have a limit of its own', async () => {
  const { api, open } = await setup(1)
  await using _ = api
  const id = await open(60n, 20n)
  assert.equal((await pause(api, id)).status, 429)
  const headers = { 'x-admin-token': 'operators-only-token' }
  const body = { limits: { keptDiskMB: 80 } }
  const changed = await api.call('PATCH', `/admin/teams/${api.ours.teamId}`, { headers, body })
  assert.equal(Object(changed.json).limits.keptDiskMB, 80)
  assert.equal((await pause(api, id)).status, 204)
})
