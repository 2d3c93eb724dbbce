import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Pauses, and every operation on a paused sandbox. Resuming is in `resume.test.ts`. */

function pause(api: ApiUnderTest, id: string, body?: object) {
  return api.call('POST', `/sandboxes/${id}/pause`, { ...(body && { body }) })
}

async function detail(api: ApiUnderTest, id: string) {
  const { status, json } = await api.call('GET', `/sandboxes/${id}`)
  return { status, ...Object(json) }
}

async function stateOf(api: ApiUnderTest, id: string) {
  return (await detail(api, id)).state
}

async function list(api: ApiUnderTest, query = '') {
  const { json, headers } = await api.call('GET', `/v2/sandboxes${query}`)
  const rows: { sandboxID: string; state: string }[] = Object(json)
  return {
    shown: rows.map(({ sandboxID, state }) => [sandboxID, state]),
    total: headers.get('x-total-running'),
  }
}

for (const [body, keepsMemory] of [
  [undefined, true],
  [{}, true],
  [{ memory: true }, true],
  [{ memory: false }, false],
] as const) {
  test(`a pause with ${JSON.stringify(body)} keeps ${keepsMemory ? 'memory' : 'files'}`, async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock })
    const id = await api.create({ timeout: 100, metadata: { a: 'b' } })
    const before = await detail(api, id)
    clock.advance(10)
    const reply = await pause(api, id, body)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal(api.node.running.size, 0)
    assert.equal(api.node.paused.get(id)?.keepsMemory, keepsMemory)
    const paused = { ...before, state: 'paused', endAt: clock.now().toISOString() }
    assert.deepEqual(await detail(api, id), paused)
    await api.restart()
    assert.deepEqual(await detail(api, id), paused)
    clock.advance(86_400 * 30)
    await api.restart()
    assert.deepEqual(await detail(api, id), paused, 'the sandbox stays until a client kills it')
  })
}

test('a paused sandbox is listed as paused, and does not count as running', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({
    clock,
    env: { ATOLL_ADMIN_TOKEN: 'operators-only-token' },
  })
  const first = await api.create()
  clock.advance(1)
  const second = await api.create()
  await pause(api, first)
  assert.deepEqual(await list(api), {
    shown: [
      [second, 'running'],
      [first, 'paused'],
    ],
    total: '1',
  })
  assert.deepEqual(await list(api, '?state=running'), { shown: [[second, 'running']], total: '1' })
  assert.deepEqual(await list(api, '?state=paused'), { shown: [[first, 'paused']], total: null })
  assert.deepEqual(await list(api, '?state=paused&template=unknown'), { shown: [], total: null })
  const v1 = Object((await api.call('GET', '/sandboxes')).json)
  assert.deepEqual([v1.length, v1[0].sandboxID], [1, second])
  const counts = await api.call('GET', '/admin/sandboxes/running-counts', {
    headers: { 'x-admin-token': 'operators-only-token' },
  })
  assert.deepEqual(counts.json, { [api.ours.teamId]: 1 })
})

test('pages over running and paused sandboxes show each once, in order of their start', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const ids: string[] = []
  for (let n = 0; n < 7; n += 1) {
    clock.advance(n % 2)
    ids.push(await api.create())
  }
  for (const id of ids.filter((_, n) => n % 3 === 0)) await pause(api, id)
  const all = (await list(api)).shown
  assert.equal(all.length, 7)
  for (const order of ['asc', 'desc']) {
    for (const limit of [1, 2, 3, 7]) {
      const seen: unknown[] = []
      let token: string | null = ''
      while (token !== null) {
        const query: string = `?order=${order}&limit=${limit}${token && `&nextToken=${token}`}`
        const { json, headers } = await api.call('GET', `/v2/sandboxes${query}`)
        for (const { sandboxID, state } of Object(json)) seen.push([sandboxID, state])
        token = headers.get('x-next-token')
      }
      assert.deepEqual(seen, order === 'desc' ? all : all.toReversed())
    }
  }
})

test('team metrics count running sandboxes, not paused ones', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const ids = [await api.create(), await api.create(), await api.create()]
  await pause(api, ids[0] ?? '')
  const release = api.node.hold('kill')
  await pause(api, ids[1] ?? '')
  const killed = api.call('DELETE', `/sandboxes/${ids[1]}`)
  await waitFor('the kill', async () => (await detail(api, ids[1] ?? '')).status === 404)
  const counted = await api.withStores(({ teamMetrics }) => teamMetrics.countRunning())
  release()
  await killed.catch(() => {})
  assert.equal(counted.get(api.ours.teamId), 1)
})

test('the timeout of a paused sandbox cannot be set: 404', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  await pause(api, id)
  for (const [path, body] of [
    ['timeout', { timeout: 10 }],
    ['refreshes', { duration: 10 }],
  ] as const) {
    const { status, json } = await api.call('POST', `/sandboxes/${id}/${path}`, { body })
    assert.deepEqual([status, Object(json).code], [404, 404])
    assert.match(Object(json).message, /is paused: resume it with POST .*\/connect first/)
  }
})

test('pausing a paused sandbox is 409; a killed or unknown one is 404', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  await pause(api, id)
  const again = await pause(api, id)
  assert.deepEqual([again.status, Object(again.json).code], [409, 409])
  assert.match(Object(again.json).message, /is already paused/)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  assert.deepEqual(
    [(await pause(api, id)).status, (await pause(api, 'iunknown')).status],
    [404, 404],
  )
  assert.equal(api.node.paused.size, 0)
  assert.equal((await detail(api, id)).status, 404)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 404)
})

test('a second pause while the first is under way waits and shares its outcome', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const release = api.node.hold('pause')
  const pauses = [pause(api, id), pause(api, id), pause(api, id)]
  await waitFor('the pause', async () => (await stateOf(api, id)) === 'paused')
  for (const path of ['timeout', 'refreshes']) {
    const body = { timeout: 10 }
    assert.equal((await api.call('POST', `/sandboxes/${id}/${path}`, { body })).status, 409)
  }
  assert.deepEqual(await list(api), { shown: [[id, 'paused']], total: '0' })
  await api.untilHeld(pauses.length)
  release()
  const statuses = (await Promise.all(pauses)).map(({ status }) => status)
  assert.deepEqual(statuses, [204, 204, 204])

  const other = await api.create()
  api.node.fail('pause', Code.ResourceExhausted)
  const releaseOther = api.node.hold('pause')
  const failing = [pause(api, other), pause(api, other)]
  await waitFor('the pause', async () => (await stateOf(api, other)) === 'paused')
  releaseOther()
  for (const { status, json } of await Promise.all(failing)) {
    assert.deepEqual([status, Object(json).code], [507, 507])
    assert.match(Object(json).message, /keeps running/)
  }
  assert.equal(await stateOf(api, other), 'running')
})

for (const [code, status] of [
  [Code.Internal, 500],
  [Code.Unavailable, 503],
  [Code.ResourceExhausted, 507],
] as const) {
  test(`a pause that the node fails with ${Code[code]} is ${status}, and the sandbox runs on`, async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock })
    const id = await api.create()
    const before = await detail(api, id)
    api.node.fail('pause', code)
    const { status: answered, json } = await pause(api, id)
    assert.deepEqual([answered, Object(json).code], [status, status])
    assert.deepEqual(await detail(api, id), before)
    api.node.fail('pause', undefined)
    assert.equal((await pause(api, id)).status, 204)
  })
}

test('a pause without a response of the node is still recorded', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  api.node.fail('pause', Code.Unavailable, 'after')
  assert.equal((await pause(api, id)).status, 204)
  assert.equal(await stateOf(api, id), 'paused')
})

test('the reconciler finds out the result of an unconfirmed pause', async () => {
  await using api = await startApiUnderTest()
  const [done, undone] = [await api.create(), await api.create()]
  const release = api.node.hold('pause')
  const pauses = [pause(api, done), pause(api, undone)]
  await waitFor('both', async () => (await list(api, '?state=paused')).shown.length === 2)
  api.node.fail('all', Code.Unavailable)
  release()
  assert.deepEqual(
    (await Promise.all(pauses)).map(({ status }) => status),
    [503, 503],
  )
  api.node.fail('all', undefined)
  await api.restart()
  assert.deepEqual([await stateOf(api, done), await stateOf(api, undone)], ['running', 'running'])
})

test('requests that wait for an unconfirmed pause do not keep the reconciler from it', async () => {
  await using api = await startApiUnderTest({})
  const id = await api.create()
  // The node pauses the sandbox, but neither the answer nor a question about the outcome gets through.
  api.node.fail('pause', Code.Unavailable, 'after')
  api.node.fail('get', Code.Unavailable)
  assert.equal((await pause(api, id)).status, 503)
  const resumed = api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60 } })
  api.node.fail('get', undefined)
  assert.equal((await resumed).status, 201)
  assert.equal(await stateOf(api, id), 'running')
})

test('without memory on the node a pause must say so, and then works', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  api.node.dropMemorySupport()
  for (const body of [undefined, {}, { memory: true }]) {
    const { status, json } = await pause(api, id, body)
    assert.deepEqual([status, Object(json).code], [400, 400])
    assert.match(Object(json).message, /keep only files.*memory: false/)
  }
  assert.equal((await pause(api, 'iunknown')).status, 404)
  assert.equal((await pause(api, id, { memory: false })).status, 204)
  assert.equal((await pause(api, id)).status, 409)
})

test('a kill during a pause wins: the pause is 404, and nothing is left', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const release = api.node.hold('pause')
  const pausing = pause(api, id)
  await waitFor('the pause', async () => (await stateOf(api, id)) === 'paused')
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  assert.equal((await pausing).status, 404)
  assert.deepEqual([api.node.running.size, api.node.paused.size], [0, 0])
  assert.match(Object((await api.call('GET', `/sandboxes/${id}`)).json).message, /was killed/)
})

test('a sandbox that ends by itself during a pause is absent', async () => {
  await using api = await startApiUnderTest()
  await waitFor('the watch', () => api.node.watchers === 1)
  const id = await api.create()
  const release = api.node.hold('pause')
  const pausing = pause(api, id)
  await waitFor('the pause', async () => (await stateOf(api, id)) === 'paused')
  api.node.end(id, 'ran out of memory')
  release()
  const { status, json } = await pausing
  assert.equal(status, 404)
  assert.match(Object(json).message, /was not found/)
})

test('a team may have any number of paused sandboxes', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '1' } })
  for (let n = 0; n < 3; n += 1) {
    const id = await api.create()
    assert.equal((await pause(api, id)).status, 204)
  }
  await api.create()
  await assert.rejects(api.create(), /429/)
})

for (const body of ['null', '[]', '{', '{"memory":null}', '{"memory":"yes"}', '{"memory":1}']) {
  test(`POST …/pause refuses ${body}`, async () => {
    await using api = await startApiUnderTest()
    const id = await api.create()
    const { status, json } = await api.call('POST', `/sandboxes/${id}/pause`, { body })
    assert.deepEqual([status, Object(json).code], [400, 400])
    assert.match(Object(json).message, /body|JSON/)
    assert.equal(await stateOf(api, id), 'running')
  })
}
