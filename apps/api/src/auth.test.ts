import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'
import { startApiUnderTest } from './sim/api.ts'
import type { ApiUnderTest } from './sim/api.ts'

/** Who may do what: complete by construction, since the list of operations is walked. */

let api: ApiUnderTest
before(async () => void (api = await startApiUnderTest()))
after(() => api[Symbol.asyncDispose]())

const unknownKey = `e2b_${'0'.repeat(40)}`
const unknownToken = `sk_e2b_${'0'.repeat(40)}`
const guarded = operations.filter(({ auth }) => auth === 'team')

const strangers: Readonly<Record<string, Record<string, string>>> = {
  'without a key': {},
  'with an unknown key': { 'x-api-key': unknownKey },
  'with a malformed key': { 'x-api-key': 'e2b_123' },
  'with an empty key': { 'x-api-key': '' },
  'with a key of another prefix': { 'x-api-key': unknownToken },
  'with an unknown token': { authorization: `Bearer ${unknownToken}` },
  'with an empty token': { authorization: 'Bearer ' },
  'with another scheme': { authorization: `Basic ${btoa('user:pass')}` },
}

test('only health and the OpenAPI document are open to everybody', () => {
  const open = operations.filter(({ auth }) => auth === 'none').map(({ path }) => path)
  assert.deepEqual(open, ['/health', '/openapi.json'])
  assert.ok(guarded.length > 10)
})

for (const operation of guarded) {
  for (const [who, headers] of Object.entries(strangers)) {
    test(`${operation.method} ${operation.path} refuses a caller ${who}`, async () => {
      const { status, json } = await api.call(operation.method, pathOf(operation), {
        headers,
        ...(operation.method !== 'GET' && { body: {} }),
      })
      assert.deepEqual([status, Object(json).code], [401, 401])
      assert.match(Object(json).message, /X-API-Key|Authorization/)
      assert.equal(api.node.running.size, 0)
    })
  }
}

for (const operation of guarded) {
  test(`${operation.method} ${operation.path} knows a key and a token`, async () => {
    const body = operation.method !== 'GET' ? { body: '{}' } : {}
    const key = { 'x-api-key': api.ours.apiKey }
    const token = { authorization: `Bearer ${api.ours.accessToken}` }
    for (const headers of [key, token]) {
      const { status, json } = await api.call(operation.method, pathOf(operation), {
        headers,
        ...body,
      })
      assert.ok([200, 400, 404].includes(status), `status ${status}`)
      assert.doesNotMatch(String(Object(json).message), /There is no (GET|POST|PATCH|DELETE)/)
    }
  })
}

test('a stranger is refused before the body is looked at', async () => {
  for (const body of ['{', 'x'.repeat(17 * 1024 * 1024)]) {
    assert.equal((await api.call('POST', '/sandboxes', { headers: {}, body })).status, 401)
  }
})

test('a key that is not ours is refused even beside a good token', async () => {
  const headers = { 'x-api-key': unknownKey, authorization: `Bearer ${api.ours.accessToken}` }
  assert.equal((await api.call('GET', '/sandboxes', { headers })).status, 401)
})

test("another team's sandbox is absent for every operation on it, and stays as it was", async () => {
  const id = await api.create()
  const unchanged = (await api.call('GET', `/sandboxes/${id}`)).json
  // Metrics are the exception: whatever is unknown has none.
  const onSandbox = guarded.filter(
    ({ path }) => path.includes('{sandboxID}') && !path.endsWith('/metrics'),
  )
  assert.ok(onSandbox.length >= 5)
  for (const { method, path } of onSandbox) {
    const reply = await api.call(method, path.replace('{sandboxID}', id), {
      headers: { 'x-api-key': api.theirs.apiKey },
      ...(method === 'POST' && { body: { timeout: 10 } }),
    })
    assert.deepEqual(
      [reply.status, reply.json],
      [404, { code: 404, message: `Sandbox ${id} was not found` }],
      `${method} ${path}`,
    )
  }
  assert.deepEqual((await api.call('GET', `/sandboxes/${id}`)).json, unchanged)
  for (const path of ['/sandboxes', '/v2/sandboxes']) {
    const listed = await api.call('GET', path, { headers: { 'x-api-key': api.theirs.apiKey } })
    assert.deepEqual(listed.json, [])
  }
})

test("another team's key is absent for every operation on it", async () => {
  const [key] = Object((await api.call('GET', '/api-keys')).json)
  const theirs = { headers: { authorization: `Bearer ${api.theirs.accessToken}` } }
  const renamed = await api.call('PATCH', `/api-keys/${key.id}`, { ...theirs, body: { name: 'x' } })
  const deleted = await api.call('DELETE', `/api-keys/${key.id}`, theirs)
  assert.deepEqual([renamed.status, deleted.status], [404, 404])
  assert.equal(Object((await api.call('GET', '/api-keys')).json)[0].name, key.name)
})

function pathOf({ path }: Operation): string {
  return path
    .replace('{sandboxID}', 'iunknown')
    .replace('{teamID}', api.ours.teamId)
    .replace('{apiKeyID}', '00000000-0000-4000-8000-000000000000')
}
