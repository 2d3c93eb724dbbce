import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { createPlatformClient } from './platform.ts'

test('a create request has the field names of the API and only the given fields', async (t) => {
  const { client, requests } = await setup(t, () => ({ status: 201, body: connected }))
  const sandbox = await client.createSandbox({ templateId: 'base', metadata: { a: 'b' } })
  assert.deepEqual(sandbox, connected)
  assert.deepEqual(requests, [
    {
      line: 'POST /v2/sandboxes',
      key: 'e2b_key',
      body: { templateID: 'base', metadata: { a: 'b' } },
    },
  ])
})

test('a list is read page by page with the token of the previous page', async (t) => {
  const { client, requests } = await setup(t, ({ line }) =>
    line.includes('nextToken=two')
      ? { status: 200, body: [listed('b')] }
      : { status: 200, body: [listed('a')], headers: { 'x-next-token': 'two' } },
  )
  const pages = client.listSandboxes({ states: ['running', 'paused'], metadata: { k: 'a b' } })
  assert.deepEqual(
    (await Array.fromAsync(pages)).map((sandbox) => sandbox.sandboxID),
    ['a', 'b'],
  )
  assert.deepEqual(
    requests.map(({ line }) => line),
    [
      'GET /v2/sandboxes?state=running%2Cpaused&metadata=k%3Da%252520b',
      'GET /v2/sandboxes?state=running%2Cpaused&metadata=k%3Da%252520b&nextToken=two',
    ],
  )
})

test('a page that the caller does not reach is never requested', async (t) => {
  const { client, requests } = await setup(t, () => ({
    status: 200,
    body: [listed('a')],
    headers: { 'x-next-token': 'two' },
  }))
  for await (const sandbox of client.listSandboxes()) {
    assert.equal(sandbox.sandboxID, 'a')
    break
  }
  assert.equal(requests.length, 1)
})

test('kill, set timeout and delete key accept an empty reply', async (t) => {
  const { client, requests } = await setup(t, () => ({ status: 204 }))
  await client.killSandbox('iabc')
  await client.setTimeout('iabc', 60)
  await client.deleteKey('k/1')
  assert.deepEqual(
    requests.map(({ line, body }) => [line, body]),
    [
      ['DELETE /sandboxes/iabc', undefined],
      ['POST /sandboxes/iabc/timeout', { timeout: 60 }],
      ['DELETE /api-keys/k%2F1', undefined],
    ],
  )
})

test('pause, connect and fork send only the given options', async (t) => {
  const { client, requests } = await setup(t, ({ line }) =>
    line.endsWith('/pause') ? { status: 204 } : { status: 200, body: forkOrConnect(line) },
  )
  await client.pauseSandbox('iabc')
  await client.pauseSandbox('iabc', { memory: false })
  await client.connectSandbox('iabc')
  await client.connectSandbox('iabc', { timeoutSeconds: 60, memory: false })
  await client.forkSandbox('iabc', { count: 3, timeoutSeconds: 60 })
  assert.deepEqual(
    requests.map(({ line, body }) => [line, body]),
    [
      ['POST /sandboxes/iabc/pause', {}],
      ['POST /sandboxes/iabc/pause', { memory: false }],
      ['POST /v2/sandboxes/iabc/connect', {}],
      ['POST /v2/sandboxes/iabc/connect', { timeout: 60, memory: false }],
      ['POST /sandboxes/iabc/fork', { count: 3, timeout: 60 }],
    ],
  )
})

for (const [status, isResumed] of [
  [200, false],
  [201, true],
] as const) {
  test(`a connect answered with ${status} has ${isResumed ? '' : 'not '}resumed the sandbox`, async (t) => {
    const { client } = await setup(t, () => ({ status, body: connected }))
    assert.deepEqual(await client.connectSandbox('iabc'), { sandbox: connected, isResumed })
  })
}

test('each result of a fork is a sandbox or a fault', async (t) => {
  const error = { code: 503, message: 'full', error_code: 'sandbox_capacity_unavailable' }
  const body = [{ sandbox: connected }, { error }]
  const { client } = await setup(t, () => ({ status: 201, body }))
  const [first, second] = await client.forkSandbox('iabc', { count: 2 })
  assert.deepEqual(first, { sandbox: connected })
  assert.ok(second && 'fault' in second)
  const { kind, reason, message } = second.fault
  assert.deepEqual([kind, reason, message], ['unavailable', 'sandbox_capacity_unavailable', 'full'])
})

test('snapshots are created, listed page by page, tagged and deleted', async (t) => {
  const named = { snapshotID: 'team/tools:v1', names: ['team/tools'] }
  const tag = { tag: 'v1', buildID: randomUUID(), createdAt: '2026-01-01T00:00:00Z' }
  const { client, requests } = await setup(t, ({ line }) => {
    if (line.startsWith('DELETE')) return { status: 204 }
    if (line.endsWith('/team%2Ftools/tags')) return { status: 200, body: [tag] }
    if (line.includes('nextToken')) return { status: 200, body: [named] }
    if (line.startsWith('GET')) {
      return { status: 200, body: [named], headers: { 'x-next-token': 'two' } }
    }
    return { status: 201, body: named }
  })
  assert.deepEqual(await client.createSnapshot('iabc', 'tools:v1'), named)
  const filter = { sandboxId: 'iabc', name: 'tools', pageSize: 1 }
  assert.deepEqual(await Array.fromAsync(client.listSnapshots(filter)), [named, named])
  await client.tagSnapshot('team/tools:v1', ['stable'])
  await client.untagSnapshot('team/tools', ['stable'])
  assert.deepEqual(await client.listSnapshotTags('team/tools'), [tag])
  await client.deleteSnapshot('team/tools:v1')
  assert.deepEqual(
    requests.map(({ line, body }) => [line, body]),
    [
      ['POST /sandboxes/iabc/snapshots', { name: 'tools:v1' }],
      ['GET /snapshots?sandboxID=iabc&name=tools&limit=1', undefined],
      ['GET /snapshots?sandboxID=iabc&name=tools&limit=1&nextToken=two', undefined],
      ['POST /templates/tags', { target: 'team/tools:v1', tags: ['stable'] }],
      ['DELETE /templates/tags', { name: 'team/tools', tags: ['stable'] }],
      ['GET /templates/team%2Ftools/tags', undefined],
      ['DELETE /templates/team%2Ftools%3Av1', undefined],
    ],
  )
})

const kinds = [
  [400, 'invalid'],
  [401, 'unauthenticated'],
  [403, 'forbidden'],
  [404, 'not_found'],
  [409, 'conflict'],
  [413, 'invalid'],
  [429, 'exhausted'],
  [500, 'internal'],
  [502, 'unavailable'],
  [503, 'unavailable'],
  [504, 'timeout'],
] as const

for (const [status, kind] of kinds) {
  test(`status ${status} becomes a fault of kind ${kind} with the server's message`, async (t) => {
    const { client } = await setup(t, () => ({ status, body: { code: status, message: 'why' } }))
    await assert.rejects(client.getSandbox('iabc'), { name: 'Fault', kind, message: 'why' })
  })
}

test('the error code of the body becomes the fault reason', async (t) => {
  const body = { code: 503, message: 'full', error_code: 'sandbox_capacity_unavailable' }
  const { client } = await setup(t, () => ({ status: 503, body }))
  await assert.rejects(client.createSandbox({ templateId: 'base' }), {
    reason: 'sandbox_capacity_unavailable',
  })
})

test('an error page that is not JSON is still a fault', async (t) => {
  const { client } = await setup(t, () => ({ status: 502, body: '<html>' }))
  await assert.rejects(client.health(), {
    kind: 'unavailable',
    message: 'The server answered with HTTP status 502',
  })
})

test('a reply without a required field is rejected with the name of the field', async (t) => {
  const { client } = await setup(t, () => ({ status: 200, body: { sandboxID: 'iabc' } }))
  await assert.rejects(client.getSandbox('iabc'), /templateID/)
})

test('an unreachable server is told apart from one that rejects the request', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = urlOf(server.address())
  await new Promise((resolve) => server.close(resolve))
  const client = createPlatformClient({ url, apiKey: 'e2b_key' })
  await assert.rejects(client.health(), {
    reason: 'no_server',
    message: `No server at ${url}`,
  })
})

test('a server that does not respond in time causes a timeout fault', async (t) => {
  const { url } = await setup(t, () => undefined)
  const client = createPlatformClient({ url, requestTimeoutMs: 50 })
  await assert.rejects(client.health(), { kind: 'timeout', reason: 'no_answer' })
})

test('the caller can abort with its own reason', async (t) => {
  const { client } = await setup(t, () => undefined)
  const reason = new Fault('conflict', 'changed_my_mind', 'No longer wanted')
  const caller = new AbortController()
  const pending = client.health({ signal: caller.signal })
  caller.abort(reason)
  await assert.rejects(pending, reason)
})

test('without an API key the access token is sent', async (t) => {
  const seen: (string | undefined)[] = []
  const { url } = await setup(t, (_, request) => {
    seen.push(request.headers.authorization)
    return { status: 200, body: [] }
  })
  await createPlatformClient({ url, accessToken: 'sk_e2b_token' }).listKeys()
  assert.deepEqual(seen, ['Bearer sk_e2b_token'])
})

interface Seen {
  readonly line: string
  readonly key: string | undefined
  readonly body: unknown
}

interface Scripted {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** Server on a free port that records its requests. An undefined answer leaves the request unanswered. */
async function setup(
  t: TestContext,
  answer: (seen: Seen, request: IncomingMessage) => Scripted | undefined,
) {
  const requests: Seen[] = []
  const server = createServer(async (request, response) => {
    const text = (await Array.fromAsync(request)).join('')
    const key = request.headers['x-api-key']
    const seen = {
      line: `${request.method} ${request.url}`,
      key: typeof key === 'string' ? key : undefined,
      body: text === '' ? undefined : JSON.parse(text),
    }
    requests.push(seen)
    const scripted = answer(seen, request)
    if (!scripted) return
    response.writeHead(scripted.status, scripted.headers)
    response.end(typeof scripted.body === 'string' ? scripted.body : JSON.stringify(scripted.body))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = urlOf(server.address())
  return { client: createPlatformClient({ url, apiKey: 'e2b_key' }), requests, url }
}

function urlOf(address: ReturnType<ReturnType<typeof createServer>['address']>): string {
  assert.ok(address !== null && typeof address === 'object')
  return `http://127.0.0.1:${address.port}`
}

const connected = {
  sandboxID: 'iabc',
  templateID: 'base0',
  clientID: '6532622b',
  envdVersion: '0.6.13',
  envdAccessToken: 'token',
}

function forkOrConnect(line: string) {
  return line.endsWith('/fork') ? [{ sandbox: connected }] : connected
}

function listed(sandboxID: string) {
  return {
    sandboxID,
    templateID: 'base0',
    clientID: '6532622b',
    state: 'running',
    startedAt: '2026-01-01T00:00:00Z',
    endAt: '2026-01-01T00:05:00Z',
    cpuCount: 2,
    memoryMB: 512,
    diskSizeMB: 1024,
    envdVersion: '0.6.13',
  }
}
