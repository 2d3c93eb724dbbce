import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { findTemplate } from '../../app/templates/find-template.ts'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { simulatedEnvdVersion } from '@atoll/simulated-node/node'

async function detail(api: ApiUnderTest, id: string) {
  const { status, json } = await api.call('GET', `/sandboxes/${id}`)
  assert.equal(status, 200)
  return Object(json)
}

test('a sandbox of v2 is secured, lives 300 s and has the sizes of its template', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({
    clock,
    env: {
      ATOLL_BASE_CPU_COUNT: '3',
      ATOLL_BASE_MEMORY_MB: '512',
      ATOLL_BASE_DISK_SIZE_MB: '2048',
    },
  })
  const created = await api.call('POST', '/v2/sandboxes', {
    body: { templateID: 'base', envVars: { A: '1' }, metadata: { user: 'x' } },
  })
  assert.equal(created.status, 201)
  const { sandboxID, templateID, envdAccessToken, ...rest } = Object(created.json)
  assert.match(sandboxID, /^i[a-z0-9]{20}$/)
  assert.match(templateID, /^[a-z0-9]{20}$/)
  assert.match(envdAccessToken, /^[0-9a-f]{64}$/)
  assert.deepEqual(rest, { clientID: '6532622b', envdVersion: simulatedEnvdVersion, alias: 'base' })
  assert.deepEqual(await detail(api, sandboxID), {
    templateID,
    sandboxID,
    clientID: '6532622b',
    alias: 'base',
    startedAt: '2026-01-01T00:00:00.000Z',
    endAt: '2026-01-01T00:05:00.000Z',
    cpuCount: 3,
    memoryMB: 512,
    diskSizeMB: 2048,
    metadata: { user: 'x' },
    state: 'running',
    envdVersion: simulatedEnvdVersion,
    envdAccessToken,
    lifecycle: { autoResume: false, onTimeout: 'kill' },
  })
  const { templateId, cpuCount, memoryMb, diskSizeMb, envVars, accessToken } =
    api.node.running.get(sandboxID) ?? assert.fail('it is not on the node')
  assert.deepEqual(
    { templateId, cpuCount, memoryMb, diskSizeMb, envVars, accessToken },
    {
      templateId: 'base',
      cpuCount: 3,
      memoryMb: 512,
      diskSizeMb: 2048,
      envVars: { A: '1' },
      accessToken: envdAccessToken,
    },
  )
})

test('a sandbox of v1 lives 15 s and has a token only when it is to be secure', async () => {
  await using api = await startApiUnderTest({ clock: manualClock() })
  const open = await api.call('POST', '/sandboxes', { body: { templateID: 'base' } })
  const secure = await api.call('POST', '/sandboxes', {
    body: { templateID: 'base', secure: true },
  })
  assert.deepEqual([open.status, secure.status], [201, 201])
  assert.equal(Object(open.json).envdAccessToken, undefined)
  assert.match(Object(secure.json).envdAccessToken, /^[0-9a-f]{64}$/)
  const id = Object(open.json).sandboxID
  assert.equal(api.node.running.get(id)?.accessToken, undefined)
  const { endAt, envdAccessToken } = await detail(api, id)
  assert.deepEqual([endAt, envdAccessToken], ['2026-01-01T00:00:15.000Z', undefined])
})

test('the default fields of clients are accepted, and unknown fields are ignored', async () => {
  await using api = await startApiUnderTest()
  for (const extra of [
    { timeout: 300, secure: true, allow_internet_access: true },
    { autoPause: false, autoResume: { enabled: false }, autoPauseMemory: true },
    { network: {}, iam: {}, volumeMounts: [], mcp: { github: {} }, metadata: {}, envVars: {} },
    {
      network: {
        allowPublicTraffic: true,
        allowOut: [],
        denyOut: [],
        egressProxy: null,
        rules: {},
      },
    },
    { mcp: null, somethingNew: { deep: [1, 2] } },
  ]) {
    const body = { templateID: 'base', ...extra }
    const { status, text } = await api.call('POST', '/sandboxes', { body })
    assert.equal(status, 201, text)
  }
})

test('the base template is found by alias, id, default tag and build', async () => {
  await using api = await startApiUnderTest()
  const { id: templateID, buildId } = await api.withStores(async ({ templates }) =>
    findTemplate(templates, 'base', api.ours.teamId),
  )
  assert.match(buildId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const names = ['base', 'BASE', templateID]
  const tags = ['', ':default', `:${buildId}`]
  for (const reference of names.flatMap((name) => tags.map((tag) => name + tag))) {
    const id = await api.create({ templateID: reference })
    assert.equal((await detail(api, id)).templateID, templateID)
  }
})

test('a killed sandbox is gone from the node and from the API, and says why', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  assert.equal(api.node.running.size, 0)
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/timeout'],
    ['POST', '/connect'],
  ] as const) {
    const { status, json } = await api.call(method, `/sandboxes/${id}${path}`, {
      ...(method === 'POST' && { body: { timeout: 1 } }),
    })
    const message = `Sandbox ${id} was not found: it was killed`
    assert.deepEqual([status, json], [404, { code: 404, message }], `${method} ${path}`)
  }
})

test('kills at the same time share one outcome; other changes are a conflict meanwhile', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  const release = api.node.holdKills()
  const kills = [1, 2, 3].map(() => api.call('DELETE', `/sandboxes/${id}`))
  await waitFor('the kill to begin', async () => {
    return (await api.call('GET', `/sandboxes/${id}`)).status === 404
  })
  for (const path of ['timeout', 'connect']) {
    const { status } = await api.call('POST', `/sandboxes/${id}/${path}`, { body: { timeout: 5 } })
    assert.equal(status, 409)
  }
  release()
  assert.deepEqual(
    (await Promise.all(kills)).map(({ status }) => status),
    [204, 204, 204],
  )
  assert.deepEqual(api.node.killed, [id])
})

test('the suffix of an old style id is dropped', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  assert.equal((await api.call('GET', `/sandboxes/${id}-6532622b`)).status, 200)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}-6532622b`)).status, 204)
})

test('timeout moves the end both ways and is cut to the longest life', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock, env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
  const id = await api.create({ timeout: 600 })
  const endAfter = async (timeout: number) => {
    const reply = await api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout } })
    assert.deepEqual([reply.status, reply.text], [204, ''])
    return (await detail(api, id)).endAt
  }
  assert.equal(await endAfter(60), '2026-01-01T00:01:00.000Z')
  assert.equal(await endAfter(1200), '2026-01-01T00:20:00.000Z')
  assert.equal(await endAfter(2 ** 31 - 1), '2026-01-01T01:00:00.000Z')
})

test('connect never shortens; v2 takes no body and gives 300 s', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock, env: { ATOLL_MAX_SANDBOX_SECONDS: '3600' } })
  const created = await api.call('POST', '/v2/sandboxes', {
    body: { templateID: 'base', timeout: 100 },
  })
  const id = Object(created.json).sandboxID
  const endAfter = async (path: string, body?: unknown) => {
    const reply = await api.call('POST', path, { body })
    assert.deepEqual([reply.status, reply.json], [200, created.json])
    return (await detail(api, id)).endAt
  }
  assert.equal(
    await endAfter(`/sandboxes/${id}/connect`, { timeout: 0 }),
    '2026-01-01T00:01:40.000Z',
  )
  assert.equal(
    await endAfter(`/sandboxes/${id}/connect`, { timeout: 200 }),
    '2026-01-01T00:03:20.000Z',
  )
  assert.equal(await endAfter(`/v2/sandboxes/${id}/connect`), '2026-01-01T00:05:00.000Z')
  assert.equal(await endAfter(`/v2/sandboxes/${id}/connect`, {}), '2026-01-01T00:05:00.000Z')
  assert.equal(
    await endAfter(`/v2/sandboxes/${id}/connect`, { timeout: 3600, memory: true }),
    '2026-01-01T01:00:00.000Z',
  )
  for (const version of ['', '/v2']) {
    const path = `${version}/sandboxes/${id}/connect`
    assert.equal((await api.call('POST', path, { body: { timeout: 3601 } })).status, 400)
  }
  // A running sandbox needs no boot, so `memory: false` has no effect.
  const memory = await api.call('POST', `/v2/sandboxes/${id}/connect`, { body: { memory: false } })
  assert.equal(memory.status, 200)
})

for (const { code, status, errorCode } of [
  { code: Code.ResourceExhausted, status: 503, errorCode: 'sandbox_capacity_unavailable' },
  { code: Code.Internal, status: 500, errorCode: 'sandbox_create_failed' },
  { code: Code.NotFound, status: 500, errorCode: 'sandbox_create_failed' },
]) {
  test(`a create that the node refuses with ${Code[code]} is ${status} and leaves nothing`, async () => {
    await using api = await startApiUnderTest()
    api.node.failCreates(code)
    const { status: answered, json } = await api.call('POST', '/v2/sandboxes', {
      body: { templateID: 'base' },
    })
    assert.deepEqual(
      [answered, Object(json).code, Object(json).error_code],
      [status, status, errorCode],
    )
    assert.doesNotMatch(String(Object(json).message), /simulated/)
    assert.deepEqual([api.node.running.size, api.node.killed.length], [0, 1])
    assert.deepEqual((await api.call('GET', '/v2/sandboxes')).json, [])
    api.node.failCreates(undefined)
    await api.create()
  })
}

test('a sandbox whose creator went away is taken down again', async () => {
  await using api = await startApiUnderTest()
  const release = api.node.holdCreates()
  const gone = new AbortController()
  const created = api.call('POST', '/v2/sandboxes', {
    body: { templateID: 'base' },
    signal: gone.signal,
  })
  await waitFor('the sandbox on the node', () => api.node.running.size === 1)
  gone.abort()
  await assert.rejects(created)
  await waitFor('its end', () => api.node.running.size === 0)
  release()
  assert.deepEqual((await api.call('GET', '/sandboxes')).json, [])
})

test('a sandbox that ends while it starts is not reported as created', async () => {
  await using api = await startApiUnderTest()
  await waitFor('the watch', () => api.node.watchers === 1)
  const release = api.node.holdCreates()
  const created = api.call('POST', '/v2/sandboxes', { body: { templateID: 'base' } })
  const id = await waitFor('the sandbox on the node', () => [...api.node.running.keys()][0])
  api.node.end(id, 'its first process exited')
  await waitFor('the news', async () =>
    /its first process/.test((await api.call('GET', `/sandboxes/${id}`)).text),
  )
  release()
  const { status, json } = await created
  assert.deepEqual([status, Object(json).error_code], [500, 'sandbox_create_failed'])
})

test('a sandbox that ends by itself is gone at once, with the reason, for its own team only', async () => {
  await using api = await startApiUnderTest()
  await waitFor('the watch', () => api.node.watchers === 1)
  const id = await api.create()
  api.node.end(id, 'ran out of memory (limit 512 MB)')
  const reply = await waitFor('its end', async () => {
    const answer = await api.call('GET', `/sandboxes/${id}`)
    return answer.status === 404 && answer
  })
  assert.equal(
    Object(reply.json).message,
    `Sandbox ${id} was not found: it ran out of memory (limit 512 MB)`,
  )
  const foreign = await api.call('GET', `/sandboxes/${id}`, {
    headers: { 'x-api-key': api.theirs.apiKey },
  })
  assert.equal(Object(foreign.json).message, `Sandbox ${id} was not found`)
})

test('a kill that the node fails is 500, and is finished once the node works again', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  api.node.failKills(Code.Internal)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 500)
  assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 404)
  api.node.failKills(undefined)
  await waitFor('the end', () => api.node.running.size === 0)
})
