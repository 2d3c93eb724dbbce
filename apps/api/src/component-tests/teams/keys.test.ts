import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

async function createKey(api: ApiUnderTest, headers?: Record<string, string>) {
  const reply = await api.call('POST', '/api-keys', {
    body: { name: 'build bot' },
    ...(headers && { headers }),
  })
  assert.equal(reply.status, 201)
  return Object(reply.json)
}

function find(api: ApiUnderTest, id: string) {
  return api
    .call('GET', '/api-keys')
    .then(({ json }) => Object(json).find((key: { id: string }) => key.id === id))
}

test('a created key is shown once, works, and is listed masked', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const { key, ...rest } = await createKey(api)
  assert.match(key, /^e2b_[0-9a-f]{40}$/)
  assert.match(rest.id, /^[0-9a-f-]{36}$/)
  assert.deepEqual(rest, {
    id: rest.id,
    name: 'build bot',
    mask: {
      prefix: 'e2b_',
      valueLength: 40,
      maskedValuePrefix: key.slice(4, 6),
      maskedValueSuffix: key.slice(-4),
    },
    createdAt: clock.now().toISOString(),
    createdBy: null,
    lastUsed: null,
  })
  const headers = { 'x-api-key': key }
  assert.equal((await api.call('GET', '/sandboxes', { headers })).status, 200)
  const listed = await api.call('GET', '/api-keys')
  assert.equal(Object(listed.json).length, 2)
  assert.doesNotMatch(listed.text, new RegExp(key))
})

test('a key made with an access token names the user who made it', async () => {
  await using api = await startApiUnderTest()
  const { createdBy } = await createKey(api, { authorization: `Bearer ${api.ours.accessToken}` })
  assert.match(createdBy.id, /^[0-9a-f-]{36}$/)
  assert.equal(createdBy.email, null)
})

test('renaming answers 202 with an empty body of declared length', async () => {
  await using api = await startApiUnderTest()
  const { id } = await createKey(api)
  const reply = await api.call('PATCH', `/api-keys/${id}`, { body: { name: 'new name' } })
  assert.deepEqual([reply.status, reply.text, reply.headers.get('content-length')], [202, '', '0'])
  assert.equal((await find(api, id)).name, 'new name')
})

test('a deleted key is refused at once', async () => {
  await using api = await startApiUnderTest()
  const { id, key } = await createKey(api)
  const headers = { 'x-api-key': key }
  assert.equal((await api.call('GET', '/sandboxes', { headers })).status, 200)
  assert.equal((await api.call('DELETE', `/api-keys/${id}`)).status, 204)
  assert.equal((await api.call('GET', '/sandboxes', { headers })).status, 401)
  assert.equal((await api.call('DELETE', `/api-keys/${id}`)).status, 404)
})

test('the last use of a key is recorded, at most once a minute', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const { id, key } = await createKey(api)
  const use = () => api.call('GET', '/sandboxes', { headers: { 'x-api-key': key } })
  const first = clock.now().toISOString()
  await use()
  await waitFor('the first use', async () => (await find(api, id)).lastUsed === first)
  clock.advance(59)
  await use()
  assert.equal((await find(api, id)).lastUsed, first)
  clock.advance(1)
  const second = clock.now().toISOString()
  await use()
  await waitFor('the second use', async () => (await find(api, id)).lastUsed === second)
})

test('keys and their state survive a restart', async () => {
  await using api = await startApiUnderTest()
  const kept = await createKey(api)
  const deleted = await createKey(api)
  await api.call('DELETE', `/api-keys/${deleted.id}`)
  await api.restart()
  const statusOf = async (key: string) =>
    (await api.call('GET', '/sandboxes', { headers: { 'x-api-key': key } })).status
  assert.deepEqual([await statusOf(kept.key), await statusOf(deleted.key)], [200, 401])
})
