import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock } from '../../sim/api.ts'
import { codes, detail, resumeCalls, startWithPaused } from '../../sim/resume-client.ts'

/** Resumes that meet another operation, an unreachable node or a crash. */

test('concurrent connects join one start, and the longest timeout counts', async () => {
  const clock = manualClock()
  const { api, id, created } = await startWithPaused({ clock })
  await using _ = api
  const release = api.node.hold('resume')
  const connects = [100, 500, 300].map((timeout) => resumeCalls.connect(api, id, { timeout }))
  await waitFor('the start', () => api.node.begun('resume') === 1)
  release()
  const replies = await Promise.all(connects)
  for (const { status, json } of replies) {
    // A late connect finds the sandbox running (200).
    assert.ok(status === 201 || status === 200)
    assert.deepEqual(json, created)
  }
  assert.deepEqual([api.node.begun('resume'), api.node.running.get(id)?.boots], [1, 1])
  const { endAt } = await detail(api, id)
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 500_000)
})

test('a sandbox that is being resumed is shown as paused, and refuses other operations', async () => {
  const { api, id } = await startWithPaused()
  await using _ = api
  const release = api.node.hold('resume')
  const connecting = resumeCalls.connect(api, id)
  await waitFor('the start', () => api.node.begun('resume') === 1)
  assert.equal((await detail(api, id)).state, 'paused')
  const statusOf = async (path: string, body: object) =>
    (await api.call('POST', `/sandboxes/${id}/${path}`, { body })).status
  assert.deepEqual(
    [await statusOf('pause', {}), await statusOf('timeout', { timeout: 1 })],
    [409, 409],
  )
  const boot = await resumeCalls.connectV2(api, id, { memory: false })
  assert.deepEqual(codes(boot), [409, 409, 'sandbox_start_in_flight'])
  release()
  assert.equal((await connecting).status, 201)
})

test('a request for a boot can join a running boot', async () => {
  const { api, id } = await startWithPaused()
  await using _ = api
  const release = api.node.hold('resume')
  const first = resumeCalls.connect(api, id, { memory: false })
  await waitFor('the start', () => api.node.begun('resume') === 1)
  const second = resumeCalls.connect(api, id, { memory: false })
  release()
  const statuses = [(await first).status, (await second).status]
  assert.ok(statuses[0] === 201 && statuses[1] !== 409, String(statuses))
  assert.equal(api.node.begun('resume'), 1)
})

for (const [name, meanwhile] of [
  ['connect', 409],
  ['resume', 404],
] as const) {
  test(`a delete during ${name} wins, and nothing is left`, async () => {
    const { api, id } = await startWithPaused()
    await using _ = api
    const release = api.node.hold('resume')
    const starting = resumeCalls[name](api, id)
    await waitFor('the start', () => api.node.begun('resume') === 1)
    assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
    release()
    assert.equal((await starting).status, 404)
    assert.deepEqual([api.node.running.size, api.node.paused.size], [0, 0])
    assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 404)
  })

  test(`${name} that ends before the delete does is ${meanwhile}`, async () => {
    const { api, id } = await startWithPaused()
    await using _ = api
    const releases = [api.node.hold('resume'), api.node.hold('kill')]
    const starting = resumeCalls[name](api, id)
    await waitFor('the start', () => api.node.begun('resume') === 1)
    const killing = api.call('DELETE', `/sandboxes/${id}`)
    await waitFor('the kill', () => api.node.begun('kill') === 1)
    releases[0]?.()
    assert.equal((await starting).status, meanwhile)
    releases[1]?.()
    assert.equal((await killing).status, 204)
    assert.deepEqual([api.node.running.size, api.node.paused.size], [0, 0])
  })
}

test('a sandbox that reappears on the node after its kill is killed again', async () => {
  const { api, id } = await startWithPaused()
  await using _ = api
  const release = api.node.hold('resume')
  const starting = resumeCalls.connect(api, id)
  await waitFor('the start', () => api.node.begun('resume') === 1)
  const kept = api.node.paused.get(id) ?? assert.fail('the sandbox is not paused')
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  api.node.revive(id, kept)
  release()
  assert.equal((await starting).status, 404)
  await waitFor('the end of the sandbox', () => api.node.running.size === 0)
})

for (const [name, killing] of [
  ['connect', 409],
  ['connectV2', 409],
  ['resume', 404],
] as const) {
  test(`${name} of a sandbox that is being killed is ${killing}`, async () => {
    const { api, id } = await startWithPaused()
    await using _ = api
    const release = api.node.hold('kill')
    const killed = api.call('DELETE', `/sandboxes/${id}`)
    await waitFor('the kill', () => api.node.begun('kill') === 1)
    assert.equal((await resumeCalls[name](api, id)).status, killing)
    release()
    assert.equal((await killed).status, 204)
  })
}

for (const name of ['connect', 'connectV2', 'resume'] as const) {
  test(`${name} waits for a pause under way, and then resumes`, async () => {
    const { api } = await startWithPaused()
    await using _ = api
    const id = await api.create()
    const release = api.node.hold('pause')
    const pausing = api.call('POST', `/sandboxes/${id}/pause`)
    await waitFor('the pause', () => api.node.begun('pause') === 2)
    const starting = resumeCalls[name](api, id)
    release()
    assert.deepEqual([(await pausing).status, (await starting).status], [204, 201])
    assert.ok(api.node.running.has(id))
  })
}

test('a connect that waits for a failing pause finds the sandbox running', async () => {
  const { api } = await startWithPaused()
  await using _ = api
  const id = await api.create()
  const release = api.node.hold('pause')
  api.node.fail('pause', Code.Internal)
  const pausing = api.call('POST', `/sandboxes/${id}/pause`)
  await waitFor('the pause', () => api.node.begun('pause') === 2)
  const connecting = resumeCalls.connect(api, id)
  release()
  assert.deepEqual([(await pausing).status, (await connecting).status], [500, 200])
})

test('a resume without a response of the node is still recorded', async () => {
  const clock = manualClock()
  const { api, id, created } = await startWithPaused({ clock })
  await using _ = api
  api.node.fail('resume', Code.Unavailable, 'after')
  const reply = await resumeCalls.connect(api, id, { timeout: 900 })
  assert.deepEqual([reply.status, reply.json], [201, created])
  const { endAt } = await detail(api, id)
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 900_000)
})

for (const [memory, reason] of [
  [false, 'sandbox_filesystem_boot_unconfirmed'],
  [true, undefined],
] as const) {
  test(`a ${memory ? 'resume' : 'boot'} that the node never answers is 503, and settled later`, async () => {
    const { api, id } = await startWithPaused()
    await using _ = api
    const release = api.node.hold('resume')
    const connecting = resumeCalls.connect(api, id, { memory })
    await waitFor('the start', () => api.node.begun('resume') === 1)
    api.node.fail('all', Code.Unavailable)
    release()
    assert.deepEqual(codes(await connecting), [503, 503, reason])
    assert.equal((await detail(api, id)).state, 'paused')
    api.node.fail('all', undefined)
    await api.restart()
    assert.equal((await resumeCalls.connect(api, id)).status, 201)
  })
}

test('after a crash the record follows the state on the node', async () => {
  const clock = manualClock()
  const { api, id: paused } = await startWithPaused({ clock })
  await using _ = api
  const running = await api.create({ timeout: 1000 })
  const other = await api.create()
  clock.advance(10)
  await api.withStores(async ({ sandboxes }) => {
    const put = (id: string, state: 'pausing' | 'resuming' | 'snapshotting') =>
      sandboxes.update(id, (current) => ({ ...current, state, holder: 'a dead process' }))
    await put(running, 'pausing')
    await put(other, 'snapshotting')
    await put(paused, 'resuming')
  })
  const states = async () =>
    Promise.all([running, other, paused].map(async (id) => (await detail(api, id)).state))
  assert.deepEqual(await states(), ['running', 'running', 'paused'])
  assert.equal((await detail(api, paused)).endAt, '2026-01-01T00:00:00.000Z')
  await api.withStores(async ({ sandboxes }) => {
    await sandboxes.update(running, (now) => ({ ...now, state: 'resuming', kept: 'memory' }))
    await sandboxes.update(paused, (now) => ({ ...now, state: 'pausing' }))
  })
  assert.deepEqual(await states(), ['running', 'running', 'paused'])
  const { startedAt, endAt } = await detail(api, running)
  assert.equal(startedAt, clock.now().toISOString())
  // The original timeout is longer than the minimum after a wake.
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 1_000_000)
})

test('records that contradict the node are corrected', async () => {
  const clock = manualClock()
  const { api, id: paused } = await startWithPaused({ clock })
  await using _ = api
  const running = await api.create()
  const lost = await api.create()
  await api.call('POST', `/sandboxes/${lost}/pause`)
  await api.withStores(async ({ sandboxes }) => {
    const endAt = new Date(clock.now().getTime() + 60_000)
    await sandboxes.update(paused, (now) => ({ ...now, state: 'running', kept: undefined, endAt }))
    await sandboxes.update(running, (now) => ({ ...now, state: 'paused', kept: 'memory' }))
    api.node.end(lost, 'vanished', 'silently')
  })
  assert.equal((await detail(api, paused)).state, 'paused')
  assert.equal((await detail(api, running)).state, 'running')
  const gone = await api.call('GET', `/sandboxes/${lost}`)
  assert.match(Object(gone.json).message, /its node does not have it any more/)
  assert.deepEqual(api.node.killed, [])
})
