import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiOptions, ApiUnderTest, Reply } from '../../sim/api.ts'

/** Resuming paused sandboxes: both versions of connect, and the old resume. */

async function setup(options: ApiOptions & { readonly memory?: boolean } = {}) {
  const api = await startApiUnderTest(options)
  const created = await api.call('POST', '/v2/sandboxes', {
    body: { templateID: 'base', timeout: 100 },
  })
  const id: string = Object(created.json).sandboxID
  const body = { memory: options.memory ?? true }
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`, { body })).status, 204)
  return { api, id, created: created.json }
}

const ways = {
  connect: (api: ApiUnderTest, id: string, body: object = {}) =>
    api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60, ...body } }),
  connectV2: (api: ApiUnderTest, id: string, body?: object) =>
    api.call('POST', `/v2/sandboxes/${id}/connect`, body && { body }),
  resume: (api: ApiUnderTest, id: string, body?: object) =>
    api.call('POST', `/sandboxes/${id}/resume`, body && { body }),
} as const

const named = Object.entries(ways)

async function detail(api: ApiUnderTest, id: string) {
  return Object((await api.call('GET', `/sandboxes/${id}`)).json)
}

function codes({ status, json }: Reply): unknown[] {
  return [status, Object(json).code, Object(json).error_code]
}

test('what the node cannot read is told in its words', async () => {
  const { api, id } = await setup()
  await using _ = api
  api.node.fail('resume', Code.FailedPrecondition)
  const { json } = await ways.connect(api, id)
  assert.equal(Object(json).message, `Sandbox ${id} stays paused: simulated failure`)
})

for (const [name, seconds] of [
  ['connect', 60],
  ['connectV2', 300],
  ['resume', 15],
] as const) {
  test(`${name} resumes with the same id, token and memory for ${seconds} s from now: 201`, async () => {
    const clock = manualClock()
    const { api, id, created } = await setup({ clock })
    await using _ = api
    clock.advance(1000)
    const reply = await ways[name](api, id)
    assert.deepEqual([reply.status, reply.json], [201, created])
    const { state, startedAt, endAt } = await detail(api, id)
    assert.deepEqual([state, startedAt], ['running', clock.now().toISOString()])
    assert.equal(Date.parse(endAt) - clock.now().getTime(), seconds * 1000)
    assert.deepEqual([api.node.running.get(id)?.boots, api.node.paused.size], [1, 0])
    assert.equal(api.node.running.get(id)?.accessToken, Object(created).envdAccessToken)
    clock.advance(seconds)
    await waitFor('its end', () => api.node.running.size === 0)
  })

  test(`${name} with memory: false boots from the files`, async () => {
    const { api, id } = await setup()
    await using _ = api
    assert.equal((await ways[name](api, id, { memory: false })).status, 201)
    assert.equal(api.node.running.get(id)?.boots, 2)
  })

  test(`${name} boots what was kept without its memory`, async () => {
    const { api, id } = await setup({ memory: false })
    await using _ = api
    assert.equal((await ways[name](api, id, { memory: true })).status, 201)
    assert.equal(api.node.running.get(id)?.boots, 2)
  })

  for (const [code, expected] of [
    [Code.ResourceExhausted, [503, 503, 'sandbox_capacity_unavailable']],
    [Code.FailedPrecondition, [409, 409, undefined]],
    [Code.Unavailable, [503, 503, undefined]],
    [Code.Internal, [500, 500, undefined]],
  ] as const) {
    test(`${name} that the node fails with ${Code[code]} is ${expected[0]}, and it stays paused`, async () => {
      const clock = manualClock()
      const { api, id } = await setup({ clock })
      await using _ = api
      const before = await detail(api, id)
      clock.advance(5)
      api.node.fail('resume', code)
      assert.deepEqual(codes(await ways[name](api, id)), expected)
      assert.deepEqual(await detail(api, id), before)
      api.node.fail('resume', undefined)
      assert.equal((await ways[name](api, id)).status, 201)
    })
  }

  test(`${name} takes a place: past the limit of the team it is 429, and it stays paused`, async () => {
    const { api, id } = await setup({ env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '1' } })
    await using _ = api
    const other = await api.create()
    assert.deepEqual(codes(await ways[name](api, id)), [429, 429, undefined])
    assert.equal((await detail(api, id)).state, 'paused')
    await api.call('DELETE', `/sandboxes/${other}`)
    assert.equal((await ways[name](api, id)).status, 201)
  })

  test(`${name} refuses a time beyond the longest: 400`, async () => {
    const { api, id } = await setup({ env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
    await using _ = api
    for (const timeout of [3601, -1, 1.5, 2 ** 31]) {
      assert.deepEqual(codes(await ways[name](api, id, { timeout })), [400, 400, undefined])
    }
    assert.equal((await detail(api, id)).state, 'paused')
    assert.equal((await ways[name](api, id, { timeout: 3600 })).status, 201)
  })

  test(`${name} on what was killed or never was is 404`, async () => {
    const { api, id } = await setup()
    await using _ = api
    await api.call('DELETE', `/sandboxes/${id}`)
    for (const gone of [id, 'iunknown']) {
      assert.deepEqual(codes(await ways[name](api, gone)), [404, 404, undefined])
    }
  })

  test(`${name} of what the node has lost is 404, and says so`, async () => {
    const { api, id } = await setup()
    await using _ = api
    api.node.end(id, 'lost', 'silently')
    const reply = await ways[name](api, id)
    assert.deepEqual(codes(reply), [404, 404, undefined])
    assert.match(Object(reply.json).message, /its node does not have it any more/)
  })
}

test('the longest life is counted from the resume', async () => {
  const clock = manualClock()
  const { api, id } = await setup({ clock, env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
  await using _ = api
  clock.advance(10_000)
  await ways.connect(api, id)
  const reply = await api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout: 9999 } })
  assert.equal(reply.status, 204)
  const { endAt } = await detail(api, id)
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 3_600_000)
})

test('resume of a running sandbox is 409, with timeout 0 it is 400; connect with 0 is not', async () => {
  const { api, id } = await setup({ clock: manualClock() })
  await using _ = api
  assert.equal((await ways.resume(api, id, { timeout: 0 })).status, 400)
  assert.equal((await ways.resume(api, id)).status, 201)
  assert.deepEqual(codes(await ways.resume(api, id)), [409, 409, undefined])
  assert.equal((await ways.connect(api, id, { timeout: 0 })).status, 200)
})

test('resume may change what happens at the end of the time', async () => {
  const { api, id } = await setup()
  await using _ = api
  assert.equal((await detail(api, id)).lifecycle.onTimeout, 'kill')
  await ways.resume(api, id, { autoPause: true })
  assert.equal((await detail(api, id)).lifecycle.onTimeout, 'pause')
})

test('connects at the same time join one start, and the longest time counts', async () => {
  const clock = manualClock()
  const { api, id, created } = await setup({ clock })
  await using _ = api
  const release = api.node.hold('resume')
  const connects = [100, 500, 300].map((timeout) => ways.connect(api, id, { timeout }))
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

test('while it is being resumed it is shown as paused, and nothing else can be done to it', async () => {
  const { api, id } = await setup()
  await using _ = api
  const release = api.node.hold('resume')
  const connecting = ways.connect(api, id)
  await waitFor('the start', () => api.node.begun('resume') === 1)
  assert.equal((await detail(api, id)).state, 'paused')
  const statusOf = async (path: string, body: object) =>
    (await api.call('POST', `/sandboxes/${id}/${path}`, { body })).status
  assert.deepEqual(
    [await statusOf('pause', {}), await statusOf('timeout', { timeout: 1 })],
    [409, 409],
  )
  const boot = await ways.connectV2(api, id, { memory: false })
  assert.deepEqual(codes(boot), [409, 409, 'sandbox_start_in_flight'])
  release()
  assert.equal((await connecting).status, 201)
})

test('a boot can be joined by who wants a boot', async () => {
  const { api, id } = await setup()
  await using _ = api
  const release = api.node.hold('resume')
  const first = ways.connect(api, id, { memory: false })
  await waitFor('the start', () => api.node.begun('resume') === 1)
  const second = ways.connect(api, id, { memory: false })
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
    const { api, id } = await setup()
    await using _ = api
    const release = api.node.hold('resume')
    const starting = ways[name](api, id)
    await waitFor('the start', () => api.node.begun('resume') === 1)
    assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
    release()
    assert.equal((await starting).status, 404)
    assert.deepEqual([api.node.running.size, api.node.paused.size], [0, 0])
    assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 404)
  })

  test(`${name} that ends before the delete does is ${meanwhile}`, async () => {
    const { api, id } = await setup()
    await using _ = api
    const releases = [api.node.hold('resume'), api.node.hold('kill')]
    const starting = ways[name](api, id)
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

test('a node that brings a sandbox back after its kill is told again to kill it', async () => {
  const { api, id } = await setup()
  await using _ = api
  const release = api.node.hold('resume')
  const starting = ways.connect(api, id)
  await waitFor('the start', () => api.node.begun('resume') === 1)
  const kept = api.node.paused.get(id) ?? assert.fail('it is not paused')
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  api.node.revive(id, kept)
  release()
  assert.equal((await starting).status, 404)
  await waitFor('its end', () => api.node.running.size === 0)
})

for (const [name, killing] of [
  ['connect', 409],
  ['connectV2', 409],
  ['resume', 404],
] as const) {
  test(`${name} on what is being killed is ${killing}`, async () => {
    const { api, id } = await setup()
    await using _ = api
    const release = api.node.hold('kill')
    const killed = api.call('DELETE', `/sandboxes/${id}`)
    await waitFor('the kill', () => api.node.begun('kill') === 1)
    assert.equal((await ways[name](api, id)).status, killing)
    release()
    assert.equal((await killed).status, 204)
  })
}

for (const [name] of named) {
  test(`${name === 'resume' ? 'resume' : name} waits for a pause under way, and then resumes`, async () => {
    const { api } = await setup()
    await using _ = api
    const id = await api.create()
    const release = api.node.hold('pause')
    const pausing = api.call('POST', `/sandboxes/${id}/pause`)
    await waitFor('the pause', () => api.node.begun('pause') === 2)
    const way = name === 'connect' ? ways.connect : name === 'resume' ? ways.resume : ways.connectV2
    const starting = way(api, id)
    release()
    assert.deepEqual([(await pausing).status, (await starting).status], [204, 201])
    assert.ok(api.node.running.has(id))
  })
}

test('a connect that waits for a pause which fails finds it running', async () => {
  const { api } = await setup()
  await using _ = api
  const id = await api.create()
  const release = api.node.hold('pause')
  api.node.fail('pause', Code.Internal)
  const pausing = api.call('POST', `/sandboxes/${id}/pause`)
  await waitFor('the pause', () => api.node.begun('pause') === 2)
  const connecting = ways.connect(api, id)
  release()
  assert.deepEqual([(await pausing).status, (await connecting).status], [500, 200])
})

test('a resume whose answer was lost is one all the same', async () => {
  const clock = manualClock()
  const { api, id, created } = await setup({ clock })
  await using _ = api
  api.node.fail('resume', Code.Unavailable, 'after')
  const reply = await ways.connect(api, id, { timeout: 900 })
  assert.deepEqual([reply.status, reply.json], [201, created])
  const { endAt } = await detail(api, id)
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 900_000)
})

for (const [memory, reason] of [
  [false, 'sandbox_filesystem_boot_unconfirmed'],
  [true, undefined],
] as const) {
  test(`a ${memory ? 'resume' : 'boot'} that the node never answers is 503, and settled later`, async () => {
    const { api, id } = await setup()
    await using _ = api
    const release = api.node.hold('resume')
    const connecting = ways.connect(api, id, { memory })
    await waitFor('the start', () => api.node.begun('resume') === 1)
    api.node.fail('all', Code.Unavailable)
    release()
    assert.deepEqual(codes(await connecting), [503, 503, reason])
    assert.equal((await detail(api, id)).state, 'paused')
    api.node.fail('all', undefined)
    await api.restart()
    assert.equal((await ways.connect(api, id)).status, 201)
  })
}

test('a crash in the middle of anything ends with what the node says', async () => {
  const clock = manualClock()
  const { api, id: paused } = await setup({ clock })
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

test('what runs on the node though its record says paused, and the reverse, is put right', async () => {
  const clock = manualClock()
  const { api, id: paused } = await setup({ clock })
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

for (const [path, body] of [
  ['resume', 'null'],
  ['resume', '{"timeout":null}'],
  ['resume', '{"timeout":"1"}'],
  ['resume', '{"autoPause":1}'],
  ['resume', '{"memory":"yes"}'],
  ['connect', '{"timeout":1,"memory":1}'],
] as const) {
  test(`POST …/${path} refuses ${body}`, async () => {
    const { api, id } = await setup()
    await using _ = api
    const reply = await api.call('POST', `/sandboxes/${id}/${path}`, { body })
    assert.deepEqual(codes(reply), [400, 400, undefined])
    assert.equal((await detail(api, id)).state, 'paused')
  })
}
