import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

function asUser(api: ApiUnderTest, token = api.ours.accessToken) {
  return { headers: { authorization: `Bearer ${token}` } }
}

test('each list of teams brings a new key that works at once and names its maker', async () => {
  await using api = await startApiUnderTest()
  const seen = new Set<string>()
  for (const _ of [1, 2]) {
    const { status, json } = await api.call('GET', '/teams', asUser(api))
    assert.equal(status, 200)
    const [team, ...others] = Object(json)
    const { teamId: teamID } = api.ours
    assert.deepEqual(others, [])
    assert.deepEqual(team, { teamID, name: 'default', apiKey: team.apiKey, isDefault: true })
    const headers = { 'x-api-key': team.apiKey }
    assert.equal((await api.call('GET', '/sandboxes', { headers })).status, 200)
    seen.add(team.apiKey)
  }
  assert.equal(seen.size, 2)
  const keys = Object((await api.call('GET', '/api-keys')).json)
  const made = keys.filter(({ name }: { name: string }) => name === 'CLI login')
  assert.equal(made.length, 2)
  assert.match(made[0].createdBy.id, /^[0-9a-f-]{36}$/)
})

test('an access token is shown once, works, and is refused at once when it is deleted', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const body = { name: 'laptop' }
  const { status, json } = await api.call('POST', '/access-tokens', { ...asUser(api), body })
  const made = Object(json)
  assert.equal(status, 201)
  assert.match(made.token, /^sk_e2b_[0-9a-f]{40}$/)
  assert.deepEqual(made, {
    id: made.id,
    name: 'laptop',
    token: made.token,
    mask: {
      prefix: 'sk_e2b_',
      valueLength: 40,
      maskedValuePrefix: made.token.slice(7, 9),
      maskedValueSuffix: made.token.slice(-4),
    },
    createdAt: clock.now().toISOString(),
  })
  const statusOf = async () => (await api.call('GET', '/sandboxes', asUser(api, made.token))).status
  await api.restart()
  assert.equal(await statusOf(), 200)
  const remove = (token: string) =>
    api.call('DELETE', `/access-tokens/${made.id}`, asUser(api, token))
  assert.equal((await remove(api.theirs.accessToken)).status, 404)
  assert.equal(await statusOf(), 200)
  assert.equal((await remove(api.ours.accessToken)).status, 204)
  assert.equal(await statusOf(), 401)
  assert.equal((await remove(api.ours.accessToken)).status, 404)
})

test('bad input is refused with the name of the field', async () => {
  await using api = await startApiUnderTest()
  const long = JSON.stringify({ name: 'x'.repeat(257) })
  for (const body of [
    '',
    '{',
    '[]',
    '{}',
    '{"name":""}',
    '{"name":5}',
    '{"name":"\\u0000"}',
    long,
  ]) {
    const { status, json } = await api.call('POST', '/access-tokens', { ...asUser(api), body })
    assert.deepEqual([status, Object(json).code], [400, 400], body)
    assert.match(Object(json).message, /body|JSON/)
  }
  const malformed = await api.call('DELETE', '/access-tokens/7', asUser(api))
  assert.equal(malformed.status, 400)
  assert.match(Object(malformed.json).message, /path\.accessTokenID: must be a UUID/)
  const unknown = await api.call('DELETE', `/access-tokens/${randomUUID()}`, asUser(api))
  assert.equal(unknown.status, 404)
})
