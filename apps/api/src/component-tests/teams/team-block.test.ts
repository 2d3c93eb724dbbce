import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Permissions of blocked and banned teams. */

const token = 'operators-only-token'
const reason = 'the bill of October is open'
let api: ApiUnderTest
before(async () => {
  const env = { ATOLL_ADMIN_TOKEN: token }
  api = await startApiUnderTest({ env, clock: manualClock() })
})
after(() => api[Symbol.asyncDispose]())

async function ask(method: string, path: string, body?: unknown) {
  const headers = { 'x-admin-token': token }
  const { status, json } = await api.call(method, `/admin/teams${path}`, { headers, body })
  return { status, json: Object(json) }
}

const block = (level: string, teamId = api.ours.teamId) =>
  ask('PUT', `/${teamId}/block`, { level, reason })
const unblock = (teamId = api.ours.teamId) => ask('DELETE', `/${teamId}/block`)

const guarded = operations.filter(({ auth }) => auth === 'team')

/** Sends a request that passes authentication and changes nothing. */
function call({ method, path }: Operation, headers: Record<string, string>) {
  const named = path
    .replace('{teamID}', api.ours.teamId)
    .replaceAll(/\{apiKeyID\}/g, crypto.randomUUID())
    .replaceAll(/\{\w+\}/g, 'iunknown')
  return api.call(method, named, { headers, ...(method !== 'GET' && { body: '{}' }) })
}

test('operators see blocked teams with reason and time until they are unblocked', async () => {
  const blocked = await block('blocked')
  const expected = { level: 'blocked', reason, since: '2026-01-01T00:00:00.000Z' }
  assert.deepEqual([blocked.status, blocked.json.block], [200, expected])
  const banned = await block('banned')
  assert.deepEqual(banned.json.block, { ...expected, level: 'banned' })
  const renamed = await ask('PATCH', `/${api.ours.teamId}`, { name: 'renamed' })
  assert.deepEqual([renamed.json.name, renamed.json.block], ['renamed', banned.json.block])
  for (const _ of [1, 2]) {
    const { status, json } = await unblock()
    assert.deepEqual([status, 'block' in json], [200, false])
  }
})

test('a blocked team may read and delete, and do nothing else', async () => {
  await block('blocked')
  try {
    for (const operation of guarded) await checkBlocked(operation)
  } finally {
    await unblock()
  }
})

async function checkBlocked(operation: Operation): Promise<void> {
  const { method, path } = operation
  // The GET for build files returns an upload URL, so it counts as a write.
  const isAllowed = (method === 'GET' && !path.includes('/files/')) || method === 'DELETE'
  const name = `${method} ${path}`
  const key = { 'x-api-key': api.ours.apiKey }
  const user = { authorization: `Bearer ${api.ours.accessToken}` }
  for (const headers of [key, user]) {
    const { status, json } = await call(operation, headers)
    if (isAllowed) assert.ok([200, 400, 404].includes(status), `${name}: status ${status}`)
    else {
      assert.deepEqual([status, Object(json).code], [403, 403], name)
      assert.match(Object(json).message, new RegExp(`team is blocked: ${reason}`), name)
    }
  }
  const operator = { 'x-admin-token': token, 'x-team-id': api.ours.teamId }
  assert.notEqual((await call(operation, operator)).status, 403, name)
  assert.notEqual((await call(operation, { 'x-api-key': api.theirs.apiKey })).status, 401, name)
}

test('a banned team may do nothing, from the next request on', async () => {
  const id = await api.create()
  await block('banned')
  try {
    for (const operation of guarded) {
      const { status, json } = await call(operation, { 'x-api-key': api.ours.apiKey })
      assert.deepEqual([status, Object(json).code], [403, 403], operation.id)
      assert.match(Object(json).message, /team is banned/)
    }
    assert.ok(api.node.running.has(id), 'its sandboxes keep running')
  } finally {
    await unblock()
  }
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
})

test('members of a banned team cannot reach it by way of another team of theirs', async () => {
  const { json: other } = await ask('POST', '', { name: 'other' })
  const email = 'ada@example.com'
  const { json: member } = await ask('POST', `/${other.teamID}/members`, { email })
  const { json: second } = await ask('POST', '', { name: 'second' })
  await ask('POST', `/${second.teamID}/members`, { email })
  const headers = { authorization: `Bearer ${member.accessToken}` }
  const list = async () =>
    (await api.call('GET', `/v2/templates?teamID=${second.teamID}`, { headers })).status
  assert.equal(await list(), 200)
  await block('blocked', second.teamID)
  assert.equal(await list(), 200)
  await block('banned', second.teamID)
  assert.equal(await list(), 403)
  assert.equal((await api.call('GET', '/v2/templates', { headers })).status, 200)
})

test('a block outlives the server', async () => {
  await block('blocked')
  await api.restart()
  assert.equal((await api.call('POST', '/v2/sandboxes', { body: {} })).status, 403)
  await unblock()
  assert.equal((await api.call('POST', '/v2/sandboxes', { body: {} })).status, 400)
})
