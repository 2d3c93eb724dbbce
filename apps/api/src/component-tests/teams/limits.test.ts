import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

const token = 'operators-only-token'

function create(api: ApiUnderTest, apiKey = api.ours.apiKey, fields: object = {}) {
  const body = { templateID: 'base', ...fields }
  return api.call('POST', '/v2/sandboxes', { headers: { 'x-api-key': apiKey }, body })
}

function setLimits(api: ApiUnderTest, limits: object) {
  const headers = { 'x-admin-token': token }
  return api.call('PATCH', `/admin/teams/${api.ours.teamId}`, { headers, body: { limits } })
}

test('of many creates at a time exactly as many succeed as the team may have', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '3' } })
  const replies = await Promise.all(Array.from({ length: 10 }, () => create(api)))
  const statuses = replies.map(({ status }) => status).toSorted((a, b) => a - b)
  assert.deepEqual(statuses, [201, 201, 201, 429, 429, 429, 429, 429, 429, 429])
  assert.equal(api.node.running.size, 3)
  const refused = replies.find(({ status }) => status === 429)
  assert.equal(Object(refused?.json).code, 429)
  assert.match(Object(refused?.json).message, /sandbox limit of the team reached \(3\)/)
  assert.equal(refused?.headers.get('retry-after'), null)
  assert.deepEqual(api.node.killed, [])
  // The limit does not affect other teams, and a kill frees a place.
  assert.equal((await create(api, api.theirs.apiKey)).status, 201)
  const [first] = Object((await api.call('GET', '/sandboxes')).json)
  await api.call('DELETE', `/sandboxes/${first.sandboxID}`)
  assert.equal((await create(api)).status, 201)
  assert.equal((await create(api)).status, 429)
})

test('a sandbox that is being created counts, and a failed one does not', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '2' } })
  api.node.failCreates(Code.Internal)
  assert.deepEqual([(await create(api)).status, (await create(api)).status], [500, 500])
  api.node.failCreates(undefined)
  const release = api.node.holdCreates()
  const underway = [create(api), create(api)]
  await waitFor('both', () => api.node.running.size === 2)
  assert.equal((await create(api)).status, 429)
  release()
  assert.deepEqual(
    (await Promise.all(underway)).map(({ status }) => status),
    [201, 201],
  )
})

test('limits of a team of its own come first, at once, and also for its longest life', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({
    clock,
    env: { ATOLL_ADMIN_TOKEN: token, ATOLL_TEAM_CONCURRENT_SANDBOXES: '1' },
  })
  assert.equal(
    (await setLimits(api, { concurrentSandboxes: 2, maxSandboxSeconds: 60 })).status,
    200,
  )
  assert.equal((await create(api, undefined, { timeout: 61 })).status, 400)
  const { json } = await create(api, undefined, { timeout: 60 })
  assert.equal((await create(api, undefined, { timeout: 60 })).status, 201)
  assert.equal((await create(api, undefined, { timeout: 60 })).status, 429)
  const id = Object(json).sandboxID
  clock.advance(30)
  const extend = (timeout: number) =>
    api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout } })
  assert.equal((await extend(600)).status, 204)
  const { endAt } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 30_000)
  const connect = { body: { timeout: 61 } }
  assert.equal((await api.call('POST', `/sandboxes/${id}/connect`, connect)).status, 400)
})

for (const [limits, message] of [
  [{ maxCpuCount: 1 }, /2 CPU cores \(limit 1\)/],
  [{ maxMemoryMB: 512 }, /1024 MiB of memory \(limit 512\)/],
  [{ maxDiskSizeMB: 100 }, /4096 MiB of disk \(limit 100\)/],
] as const) {
  test(`a template beyond ${JSON.stringify(limits)} is refused`, async () => {
    await using api = await startApiUnderTest({ env: { ATOLL_ADMIN_TOKEN: token } })
    await setLimits(api, limits)
    const { status, json } = await create(api)
    assert.deepEqual([status, Object(json).code], [400, 400])
    assert.match(Object(json).message, message)
    assert.match(Object(json).message, /templateID/)
    assert.equal((await create(api, api.theirs.apiKey)).status, 201)
  })
}

test('rate limits are off unless they are configured', async () => {
  await using api = await startApiUnderTest()
  const { headers } = await api.call('GET', '/sandboxes')
  assert.equal(headers.get('ratelimit-limit'), null)
})

test('a rate limit applies per team and operation, is sent in headers, and starts over', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({
    clock,
    env: { ATOLL_RATE_LIMITS: 'sandbox.list=2/10,*=1000/10' },
  })
  const list = async (apiKey = api.ours.apiKey) => {
    const reply = await api.call('GET', '/sandboxes', { headers: { 'x-api-key': apiKey } })
    const names = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after']
    return [reply.status, ...names.map((name) => reply.headers.get(name))]
  }
  assert.deepEqual(await list(), [200, '2', '1', '10', null])
  clock.advance(3.5)
  assert.deepEqual(await list(), [200, '2', '0', '7', null])
  assert.deepEqual(await list(), [429, '2', '0', '7', '7'])
  const refused = await api.call('GET', '/sandboxes')
  assert.equal(Object(refused.json).code, 429)
  assert.match(Object(refused.json).message, /try again in 7 seconds/)
  assert.equal((await list(api.theirs.apiKey))[0], 200)
  const other = await api.call('GET', '/v2/sandboxes')
  assert.deepEqual([other.status, other.headers.get('ratelimit-limit')], [200, '1000'])
  clock.advance(6.5)
  assert.deepEqual(await list(), [200, '2', '1', '10', null])
})

test('requests without a valid key are refused and do not count towards a rate limit', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_RATE_LIMITS: '*=1/1000' } })
  for (const _ of [1, 2, 3]) {
    assert.equal((await api.call('GET', '/sandboxes', { headers: {} })).status, 401)
  }
  assert.equal((await api.call('GET', '/sandboxes')).status, 200)
  assert.equal((await api.call('GET', '/sandboxes')).status, 429)
})
