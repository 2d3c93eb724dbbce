import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiOptions, ApiUnderTest } from '../../sim/api.ts'

/** Waking paused sandboxes by traffic: which sandboxes, for which clients, for how long, and the errors otherwise. */

const waking = { autoPause: true, autoResume: { enabled: true } }

async function setup(fields: object = {}, options: ApiOptions & { memory?: boolean } = {}) {
  const api = await startApiUnderTest(options)
  const body = { templateID: 'base', timeout: 100, ...waking, ...fields }
  const { status, json, text } = await api.call('POST', '/v2/sandboxes', { body })
  assert.equal(status, 201, text)
  const { sandboxID: id, envdAccessToken, trafficAccessToken } = Object(json)
  await pause(api, id, options.memory)
  return { api, id, tokens: { envdAccessToken, trafficAccessToken } }
}

async function pause(api: ApiUnderTest, id: string, memory = true) {
  const reply = await api.call('POST', `/sandboxes/${id}/pause`, { body: { memory } })
  assert.equal(reply.status, 204, reply.text)
}

function wake(
  api: ApiUnderTest,
  sandboxId: string,
  given: { port?: number; accessToken?: string; trafficToken?: string; signal?: AbortSignal } = {},
) {
  const { port = 8080, accessToken, trafficToken, signal = AbortSignal.timeout(60_000) } = given
  return api.wake({ sandboxId, port, accessToken, trafficToken }, signal)
}

async function stateOf(api: ApiUnderTest, id: string) {
  return Object((await api.call('GET', `/sandboxes/${id}`)).json).state
}

for (const [timeout, max, expected] of [
  [100, 3600, 300],
  [900, 3600, 900],
  [200, 250, 250],
] as const) {
  test(`created for ${timeout} s of at most ${max}, it is woken for ${expected} s`, async () => {
    const clock = manualClock()
    const env = { ATOLL_MAX_SANDBOX_SECONDS: String(max) }
    const { api, id } = await setup({ timeout }, { clock, env })
    await using _ = api
    clock.advance(10_000)
    assert.deepEqual(await wake(api, id), { kind: 'running' })
    const { state, endAt } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
    assert.equal(state, 'running')
    assert.equal(Date.parse(endAt) - clock.now().getTime(), expected * 1000)
    assert.equal(api.node.running.get(id)?.boots, 1)
    assert.deepEqual(await wake(api, id), { kind: 'running' })
  })
}

for (const [what, fields, memory] of [
  ['whose creator did not ask for it', { autoResume: { enabled: false } }, true],
  ['that has lost its memory', {}, false],
] as const) {
  test(`a sandbox ${what} is not woken`, async () => {
    const { api, id } = await setup(fields, { memory })
    await using _ = api
    assert.deepEqual(await wake(api, id), { kind: 'not_found' })
    assert.equal(await stateOf(api, id), 'paused')
  })
}

test('a killed or unknown sandbox is not found', async () => {
  const { api, id } = await setup()
  await using _ = api
  await api.call('DELETE', `/sandboxes/${id}`)
  assert.deepEqual(await wake(api, id), { kind: 'not_found' })
  assert.deepEqual(await wake(api, 'iunknown'), { kind: 'not_found' })
})

test('only requests with the token resume a secured sandbox through envd', async () => {
  const { api, id, tokens } = await setup()
  await using _ = api
  for (const accessToken of [undefined, '', 'x', `${tokens.envdAccessToken}0`]) {
    const result = await wake(api, id, {
      port: 49_983,
      ...(accessToken !== undefined && { accessToken }),
    })
    assert.equal(result.kind, 'forbidden')
    assert.match(result.message ?? '', /X-Access-Token/)
  }
  assert.equal(await stateOf(api, id), 'paused')
  const accessToken = tokens.envdAccessToken
  assert.equal((await wake(api, id, { port: 49_983, accessToken })).kind, 'running')
})

test('any request resumes an unsecured sandbox through envd', async () => {
  await using api = await startApiUnderTest()
  const body = { templateID: 'base', timeout: 100, ...waking }
  const { json } = await api.call('POST', '/sandboxes', { body })
  const id = Object(json).sandboxID
  await pause(api, id)
  assert.equal((await wake(api, id, { port: 49_983 })).kind, 'running')
})

test('requests to ports of a private sandbox need the traffic token to resume it, requests to envd its own token', async () => {
  const { api, id, tokens } = await setup({ network: { allowPublicTraffic: false } })
  await using _ = api
  const { trafficAccessToken: trafficToken, envdAccessToken: accessToken } = tokens
  for (const given of [{}, { trafficToken: 'x' }, { accessToken }, { trafficToken: accessToken }]) {
    const result = await wake(api, id, given)
    assert.equal(result.kind, 'forbidden')
    assert.match(result.message ?? '', /E2B-Traffic-Access-Token/)
  }
  assert.equal((await wake(api, id, { port: 49_983, trafficToken })).kind, 'forbidden')
  assert.equal(await stateOf(api, id), 'paused')
  assert.equal((await wake(api, id, { trafficToken })).kind, 'running')
})

test('traffic does not resume sandboxes of a blocked team', async () => {
  const token = 'operators-only-token'
  const { api, id } = await setup({}, { env: { ATOLL_ADMIN_TOKEN: token } })
  await using _ = api
  const blocked = await api.call('PUT', `/admin/teams/${api.ours.teamId}/block`, {
    headers: { 'x-admin-token': token },
    body: { level: 'blocked', reason: 'unpaid' },
  })
  assert.ok(blocked.status < 300, blocked.text)
  assert.equal((await wake(api, id)).kind, 'forbidden')
})

test('a resume by traffic counts towards the limit of the team', async () => {
  const { api, id } = await setup({}, { env: { ATOLL_TEAM_CONCURRENT_SANDBOXES: '1' } })
  await using _ = api
  const other = await api.create()
  const { kind, message } = await wake(api, id)
  assert.equal(kind, 'limit')
  assert.match(message ?? '', /sandbox limit of the team reached \(1\)/)
  await api.call('DELETE', `/sandboxes/${other}`)
  assert.equal((await wake(api, id)).kind, 'running')
})

test('concurrent requests share one resume', async () => {
  const { api, id } = await setup()
  await using _ = api
  const release = api.node.hold('resume')
  const wakes = Array.from({ length: 20 }, () => wake(api, id))
  await waitFor('the start', () => api.node.begun('resume') === 1)
  const connecting = api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 10 } })
  release()
  assert.ok((await Promise.all(wakes)).every(({ kind }) => kind === 'running'))
  assert.ok([200, 201].includes((await connecting).status))
  assert.equal(api.node.begun('resume'), 1)
})

test('a request during a pause resumes the sandbox after it', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create(waking)
  const release = api.node.hold('pause')
  const pausing = api.call('POST', `/sandboxes/${id}/pause`)
  await waitFor('the pause', () => api.node.begun('pause') === 1)
  const woken = wake(api, id)
  release()
  assert.deepEqual([(await pausing).status, await woken], [204, { kind: 'running' }])
  assert.ok(api.node.running.has(id))
})

test('a sandbox that is killed during its resume is not found', async () => {
  const { api, id } = await setup()
  await using _ = api
  const release = api.node.hold('resume')
  const woken = wake(api, id)
  await waitFor('the start', () => api.node.begun('resume') === 1)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  assert.deepEqual(await woken, { kind: 'not_found' })
  assert.deepEqual([api.node.running.size, api.node.paused.size], [0, 0])
})

for (const code of [Code.Internal, Code.ResourceExhausted, Code.FailedPrecondition]) {
  test(`the error ${Code[code]} of a node is not shown to callers`, async () => {
    const { api, id } = await setup()
    await using _ = api
    api.node.fail('resume', code)
    assert.deepEqual(await wake(api, id), { kind: 'not_found' })
    assert.equal(await stateOf(api, id), 'paused')
  })
}

test('a caller that disconnects is released, and the resume continues', async () => {
  const { api, id } = await setup()
  await using _ = api
  const release = api.node.hold('resume')
  const leaving = new AbortController()
  const woken = wake(api, id, { signal: leaving.signal })
  await waitFor('the start', () => api.node.begun('resume') === 1)
  leaving.abort(new Error('gone'))
  await assert.rejects(woken, /gone/)
  release()
  await waitFor('the sandbox', async () => (await stateOf(api, id)) === 'running')
})
