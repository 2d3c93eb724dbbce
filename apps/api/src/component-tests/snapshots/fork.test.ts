import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

function fork(api: ApiUnderTest, id: string, body?: object) {
  return api.call('POST', `/sandboxes/${id}/fork`, body && { body })
}

async function detail(api: ApiUnderTest, id: string) {
  return Object((await api.call('GET', `/sandboxes/${id}`)).json)
}

function codes({ status, json }: Reply): unknown[] {
  return [status, Object(json).code]
}

function sandboxesOf({ json }: Reply): { sandboxID: string; envdAccessToken: string }[] {
  return Object(json).map(({ sandbox }: { sandbox: object }) => sandbox)
}

test('forks have their own IDs and tokens and everything else of their source, which keeps running', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const fields = {
    timeout: 500,
    metadata: { a: 'b' },
    autoPause: true,
    autoResume: { enabled: true },
    network: { denyOut: ['1.2.3.4'], allowPublicTraffic: false },
    envVars: { A: '1' },
  }
  const id = await api.create(fields)
  const before = await detail(api, id)
  clock.advance(10)
  const reply = await fork(api, id, { count: 3, timeout: 60 })
  assert.equal(reply.status, 201, reply.text)
  const copies = sandboxesOf(reply)
  assert.equal(new Set([id, ...copies.map(({ sandboxID }) => sandboxID)]).size, 4)
  assert.equal(new Set(copies.map(({ envdAccessToken }) => envdAccessToken)).size, 3)
  assert.deepEqual(await detail(api, id), before)
  for (const { sandboxID, envdAccessToken } of copies) {
    assert.deepEqual(await detail(api, sandboxID), {
      ...before,
      sandboxID,
      envdAccessToken,
      parent: { sandboxID: id, kind: 'fork' },
      startedAt: clock.now().toISOString(),
      endAt: new Date(clock.now().getTime() + 60_000).toISOString(),
    })
    const { boots, network, accessToken } = api.node.running.get(sandboxID) ?? assert.fail()
    assert.deepEqual([boots, accessToken], [1, envdAccessToken])
    assert.deepEqual(network, api.node.running.get(id)?.network)
  }
  await waitFor('the temporary snapshot to go', () => api.node.snapshots.size === 0)
  assert.equal(api.node.begun('snapshot'), 1)
  assert.deepEqual((await api.call('GET', '/snapshots')).json, [])
  const [base] = Object((await api.call('GET', '/templates')).json)
  assert.equal(base.spawnCount, 4)
})

for (const body of [undefined, {}]) {
  test(`a fork with ${JSON.stringify(body)} makes one copy for 15 s`, async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock })
    const id = await api.create()
    const [copy, ...others] = sandboxesOf(await fork(api, id, body))
    assert.deepEqual(others, [])
    const { endAt } = await detail(api, copy?.sandboxID ?? '')
    assert.equal(Date.parse(endAt) - clock.now().getTime(), 15_000)
  })
}

test('a copy of a copy, and of a sandbox that was made of a snapshot', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const [copy] = sandboxesOf(await fork(api, id))
  const [second] = sandboxesOf(await fork(api, copy?.sandboxID ?? '', { timeout: 60 }))
  const snapshot = await api.call('POST', `/sandboxes/${second?.sandboxID}/snapshots`, { body: {} })
  const made = await api.create({ templateID: Object(snapshot.json).snapshotID })
  const [third] = sandboxesOf(await fork(api, made))
  assert.equal(
    (await detail(api, third?.sandboxID ?? '')).templateID,
    (await detail(api, made)).templateID,
  )
  await waitFor('the temporary snapshots to go', () => api.node.snapshots.size === 1)
})

const badBodies: readonly (readonly [object | string, RegExp])[] = [
  [{ count: 0 }, /body\.count/],
  [{ count: -1 }, /body\.count/],
  [{ count: 101 }, /body\.count/],
  [{ count: 1.5 }, /body\.count/],
  [{ count: '2' }, /body\.count/],
  [{ count: null }, /body\.count/],
  [{ count: 3 }, /count must be less than 3/],
  [{ timeout: 0 }, /timeout must be at least 1/],
  [{ timeout: -1 }, /body\.timeout/],
  [{ timeout: 2 ** 31 }, /body\.timeout/],
  [{ timeout: 3601 }, /timeout must be at most 3600/],
  ['null', /body/],
  ['[]', /body/],
  ['{', /JSON/],
]

test('bad input is refused, and nothing is copied', async () => {
  await using api = await startApiUnderTest({
    env: { ATOLL_MAX_SANDBOX_SECONDS: '3600', ATOLL_TEAM_CONCURRENT_SANDBOXES: '3' },
  })
  const id = await api.create()
  for (const [body, message] of badBodies) {
    const reply = await api.call('POST', `/sandboxes/${id}/fork`, { body })
    assert.deepEqual(codes(reply), [400, 400], JSON.stringify(body))
    assert.match(Object(reply.json).message, message)
  }
  assert.deepEqual([api.node.begun('snapshot'), api.node.running.size], [0, 1])
})

test('each fork beyond the limit fails with the reason, and the others run', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '4' } })
  const id = await api.create()
  await api.create()
  const reply = await fork(api, id, { count: 3, timeout: 60 })
  assert.equal(reply.status, 201)
  const errors = Object(reply.json).flatMap(
    ({ error }: { error?: { code: number } }) => error ?? [],
  )
  assert.deepEqual([errors.length, errors[0].code], [1, 429])
  assert.match(errors[0].message, /sandbox limit of the team reached \(4\)/)
  await waitFor('the temporary snapshot to go', () => api.node.snapshots.size === 0)
  assert.equal(api.node.running.size, 4)
})

test('copies that the node cannot start fail for themselves, and leave nothing', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  api.node.failCreates(Code.ResourceExhausted)
  const reply = await fork(api, id, { count: 2 })
  assert.equal(reply.status, 201)
  for (const { sandbox, error } of Object(reply.json)) {
    assert.deepEqual([sandbox, error.code], [undefined, 503])
    assert.equal(error.error_code, 'sandbox_capacity_unavailable')
  }
  await waitFor('the temporary snapshot to go', () => api.node.snapshots.size === 0)
  assert.deepEqual([...api.node.running.keys()], [id])
})

for (const [code, status] of [
  [Code.Internal, 500],
  [Code.ResourceExhausted, 507],
] as const) {
  test(`a fork whose copy the node fails with ${Code[code]} is ${status}: nothing was tried`, async () => {
    await using api = await startApiUnderTest()
    const id = await api.create()
    api.node.fail('snapshot', code)
    assert.deepEqual(codes(await fork(api, id)), [status, status])
    assert.deepEqual([...api.node.running.keys()], [id])
    assert.equal((await detail(api, id)).state, 'running')
  })
}

test('a pause during a fork is 409 while it is copied, and does not harm the copies after', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const release = api.node.hold('snapshot')
  const releaseCreates = api.node.holdCreates()
  const forking = fork(api, id, { count: 2, timeout: 60 })
  await waitFor('the copy', () => api.node.begun('snapshot') === 1)
  assert.deepEqual(codes(await api.call('POST', `/sandboxes/${id}/pause`)), [409, 409])
  release()
  await waitFor('the copies', () => api.node.begun('create') === 3)
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  releaseCreates()
  const reply = await forking
  assert.equal(sandboxesOf(reply).filter(Boolean).length, 2)
  assert.deepEqual([...api.node.paused.keys()], [id])
  await waitFor('the temporary snapshot to go', () => api.node.snapshots.size === 0)
})

test('a fork of a paused or transitional sandbox is 409, of an unknown or killed one 404', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  await api.call('POST', `/sandboxes/${id}/pause`)
  assert.deepEqual(codes(await fork(api, id)), [409, 409])
  await api.call('DELETE', `/sandboxes/${id}`)
  assert.deepEqual(codes(await fork(api, id)), [404, 404])
  assert.deepEqual(codes(await fork(api, 'iunknown')), [404, 404])
})

test('a source that is killed while it is copied is 404, and nothing is left', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const release = api.node.hold('snapshot')
  const forking = fork(api, id, { count: 2 })
  await waitFor('the copy', () => api.node.begun('snapshot') === 1)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  assert.deepEqual(codes(await forking), [404, 404])
  await waitFor('the temporary snapshot to go', () => api.node.snapshots.size === 0)
  assert.equal(api.node.running.size, 0)
})

test('a caller that leaves gets no copies, and none are left', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const release = api.node.holdCreates()
  const leaving = new AbortController()
  const forking = api.call('POST', `/sandboxes/${id}/fork`, {
    body: { count: 2, timeout: 60 },
    signal: leaving.signal,
  })
  await waitFor('the copies', () => api.node.begun('create') === 3)
  leaving.abort()
  await assert.rejects(forking)
  await waitFor('their end', () => api.node.running.size === 1)
  release()
  await waitFor('the copy to go', () => api.node.snapshots.size === 0)
  assert.deepEqual([...api.node.running.keys()], [id])
})
