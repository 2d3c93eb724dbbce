import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'
import { fleetWithoutNodes, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Authorization tests. They iterate over the list of operations, so no operation is left out. */

const adminToken = 'operators-only-token'
let api: ApiUnderTest
before(async () => {
  api = await startApiUnderTest({
    env: { ATOLL_ADMIN_TOKEN: adminToken },
    fleet: fleetWithoutNodes,
  })
})
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
  'with a wrong admin token': { 'x-admin-token': `${adminToken}x` },
  'with an empty admin token': { 'x-admin-token': '' },
}

test('only health, the OpenAPI document and its page need no key', () => {
  const open = operations.filter(({ auth }) => auth === 'none').map(({ path }) => path)
  assert.deepEqual(open, ['/health', '/openapi.json', '/docs'])
  assert.ok(guarded.length > 10)
})

for (const operation of guarded) {
  test(`${operation.method} ${operation.path} is for teams, and for operators who name one`, async () => {
    for (const [who, headers] of Object.entries(strangers)) {
      const { status, json } = await call(operation, headers)
      assert.deepEqual([status, Object(json).code], [401, 401], who)
      assert.match(Object(json).message, /X-API-Key|Authorization|X-Admin-Token/, who)
    }
    assert.equal(api.node.running.size, 0)
    const key = { 'x-api-key': api.ours.apiKey }
    const token = { authorization: `Bearer ${api.ours.accessToken}` }
    for (const headers of [key, token, asAdmin()]) {
      const { status, json } = await call(operation, headers)
      assert.ok([200, 400, 404].includes(status), `status ${status}`)
      assert.doesNotMatch(String(Object(json).message), /There is no (GET|POST|PATCH|DELETE)/)
    }
    const withoutTeam = { 'x-admin-token': adminToken }
    assert.equal((await call(operation, withoutTeam)).status, 401)
    const ofNobody = { ...withoutTeam, 'x-team-id': crypto.randomUUID() }
    assert.equal((await call(operation, ofNobody)).status, 403)
  })
}

for (const operation of operations.filter(({ auth }) => auth === 'user')) {
  test(`${operation.method} ${operation.path} is for users alone`, async () => {
    const others = { 'with a key': { 'x-api-key': api.ours.apiKey }, 'as operator': asAdmin() }
    for (const [who, headers] of Object.entries({ ...strangers, ...others })) {
      const { status, json } = await call(operation, headers)
      assert.deepEqual([status, Object(json).code], [401, 401], who)
    }
    const { status } = await call(operation, { authorization: `Bearer ${api.ours.accessToken}` })
    assert.ok([200, 400, 404].includes(status), `status ${status}`)
  })
}

for (const operation of operations.filter(({ auth }) => auth === 'admin')) {
  test(`${operation.method} ${operation.path} is for operators alone`, async () => {
    const others = {
      'with a key': { 'x-api-key': api.ours.apiKey },
      'with a token': { authorization: `Bearer ${api.ours.accessToken}` },
      'with the admin token elsewhere': { 'x-api-key': adminToken },
    }
    for (const [who, headers] of Object.entries({ ...strangers, ...others })) {
      const { status, json } = await call(operation, headers)
      assert.deepEqual([status, Object(json).code], [401, 401], who)
    }
    const { status } = await call(operation, { 'x-admin-token': adminToken })
    assert.ok([200, 400, 404].includes(status), `status ${status}`)
  })
}

test('an operator acts for the named team, and for that one only', async () => {
  const id = await api.create()
  const asked = async (teamId: string) =>
    (await api.call('GET', `/sandboxes/${id}`, { headers: { ...asAdmin(), 'x-team-id': teamId } }))
      .status
  assert.deepEqual([await asked(api.ours.teamId), await asked(api.theirs.teamId)], [200, 404])
  await api.call('DELETE', `/sandboxes/${id}`)
})

test('a user names one of their teams, not one of others', async () => {
  const asked = async (teamId: string) =>
    (
      await api.call('GET', '/sandboxes', {
        headers: { authorization: `Bearer ${api.ours.accessToken}`, 'x-team-id': teamId },
      })
    ).status
  assert.deepEqual([await asked(api.ours.teamId), await asked(api.theirs.teamId)], [200, 403])
})

test('without a configured admin token no caller is an operator', async () => {
  await using other = await startApiUnderTest()
  for (const token of ['', 'undefined', adminToken]) {
    const headers = { 'x-admin-token': token, 'x-team-id': other.ours.teamId }
    for (const path of ['/admin/teams', '/sandboxes']) {
      assert.equal((await other.call('GET', path, { headers })).status, 401)
    }
  }
})

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
  // Metrics and logs are the exception: they are empty for an unknown sandbox.
  const onSandbox = guarded.filter(
    ({ path }) => path.includes('{sandboxID}') && !/\/(metrics|logs)$/.test(path),
  )
  assert.ok(onSandbox.length >= 5)
  for (const { method, path } of onSandbox) {
    const query = path.endsWith('/content') ? '?path=/etc/hosts' : ''
    const reply = await api.call(method, path.replace('{sandboxID}', id) + query, {
      headers: { 'x-api-key': api.theirs.apiKey },
      ...(method !== 'GET' && { body: { timeout: 10 } }),
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

function asAdmin() {
  return { 'x-admin-token': adminToken, 'x-team-id': api.ours.teamId }
}

function call(operation: Operation, headers: Record<string, string>) {
  const body = operation.method === 'GET' ? {} : { body: '{}' }
  return api.call(operation.method, pathOf(operation), { headers, ...body })
}

function pathOf({ path }: Operation): string {
  return path
    .replace('{sandboxID}', 'iunknown')
    .replace('{teamID}', api.ours.teamId)
    .replaceAll(
      /\{(apiKeyID|accessTokenID|userID|buildID)\}/g,
      '00000000-0000-4000-8000-000000000000',
    )
}
