import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock } from '../../sim/api.ts'
import { codes, detail, resumeCalls, startWithPaused } from '../../sim/resume-client.ts'

/** Resuming paused sandboxes: both versions of connect, and the old resume. */

test('the client gets the reason why the node cannot read the memory', async () => {
  const { api, id } = await startWithPaused()
  await using _ = api
  api.node.fail('resume', Code.FailedPrecondition)
  const { json } = await resumeCalls.connect(api, id)
  assert.equal(Object(json).message, `Sandbox ${id} stays paused: simulated failure`)
})

for (const [name, seconds] of [
  ['connect', 60],
  ['connectV2', 300],
  ['resume', 15],
] as const) {
  test(`${name} resumes with the same id, token and memory for ${seconds} s from now: 201`, async () => {
    const clock = manualClock()
    const { api, id, created } = await startWithPaused({ clock })
    await using _ = api
    clock.advance(1000)
    const reply = await resumeCalls[name](api, id)
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
    const { api, id } = await startWithPaused()
    await using _ = api
    assert.equal((await resumeCalls[name](api, id, { memory: false })).status, 201)
    assert.equal(api.node.running.get(id)?.boots, 2)
  })

  test(`${name} boots a sandbox that was paused without memory`, async () => {
    const { api, id } = await startWithPaused({ memory: false })
    await using _ = api
    assert.equal((await resumeCalls[name](api, id, { memory: true })).status, 201)
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
      const { api, id } = await startWithPaused({ clock })
      await using _ = api
      const before = await detail(api, id)
      clock.advance(5)
      api.node.fail('resume', code)
      assert.deepEqual(codes(await resumeCalls[name](api, id)), expected)
      assert.deepEqual(await detail(api, id), before)
      api.node.fail('resume', undefined)
      assert.equal((await resumeCalls[name](api, id)).status, 201)
    })
  }

  test(`${name} takes a place: past the limit of the team it is 429, and it stays paused`, async () => {
    const { api, id } = await startWithPaused({ env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '1' } })
    await using _ = api
    const other = await api.create()
    assert.deepEqual(codes(await resumeCalls[name](api, id)), [429, 429, undefined])
    assert.equal((await detail(api, id)).state, 'paused')
    await api.call('DELETE', `/sandboxes/${other}`)
    assert.equal((await resumeCalls[name](api, id)).status, 201)
  })

  test(`${name} refuses a time beyond the longest: 400`, async () => {
    const { api, id } = await startWithPaused({ env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
    await using _ = api
    for (const timeout of [3601, -1, 1.5, 2 ** 31]) {
      assert.deepEqual(codes(await resumeCalls[name](api, id, { timeout })), [400, 400, undefined])
    }
    assert.equal((await detail(api, id)).state, 'paused')
    assert.equal((await resumeCalls[name](api, id, { timeout: 3600 })).status, 201)
  })

  test(`${name} of a killed or unknown sandbox is 404`, async () => {
    const { api, id } = await startWithPaused()
    await using _ = api
    await api.call('DELETE', `/sandboxes/${id}`)
    for (const gone of [id, 'iunknown']) {
      assert.deepEqual(codes(await resumeCalls[name](api, gone)), [404, 404, undefined])
    }
  })

  test(`${name} of a sandbox that the node lost is 404 with the reason`, async () => {
    const { api, id } = await startWithPaused()
    await using _ = api
    api.node.end(id, 'lost', 'silently')
    const reply = await resumeCalls[name](api, id)
    assert.deepEqual(codes(reply), [404, 404, undefined])
    assert.match(Object(reply.json).message, /its node does not have it any more/)
  })
}

test('the longest life is counted from the resume', async () => {
  const clock = manualClock()
  const { api, id } = await startWithPaused({ clock, env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
  await using _ = api
  clock.advance(10_000)
  await resumeCalls.connect(api, id)
  const reply = await api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout: 9999 } })
  assert.equal(reply.status, 204)
  const { endAt } = await detail(api, id)
  assert.equal(Date.parse(endAt) - clock.now().getTime(), 3_600_000)
})

test('resume of a running sandbox is 409, with timeout 0 it is 400; connect with 0 is not', async () => {
  const { api, id } = await startWithPaused({ clock: manualClock() })
  await using _ = api
  assert.equal((await resumeCalls.resume(api, id, { timeout: 0 })).status, 400)
  assert.equal((await resumeCalls.resume(api, id)).status, 201)
  assert.deepEqual(codes(await resumeCalls.resume(api, id)), [409, 409, undefined])
  assert.equal((await resumeCalls.connect(api, id, { timeout: 0 })).status, 200)
})

test('resume can change what happens at the timeout', async () => {
  const { api, id } = await startWithPaused()
  await using _ = api
  assert.equal((await detail(api, id)).lifecycle.onTimeout, 'kill')
  await resumeCalls.resume(api, id, { autoPause: true })
  assert.equal((await detail(api, id)).lifecycle.onTimeout, 'pause')
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
    const { api, id } = await startWithPaused()
    await using _ = api
    const reply = await api.call('POST', `/sandboxes/${id}/${path}`, { body })
    assert.deepEqual(codes(reply), [400, 400, undefined])
    assert.equal((await detail(api, id)).state, 'paused')
  })
}
