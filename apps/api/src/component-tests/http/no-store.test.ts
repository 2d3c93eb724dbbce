import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'

test('no cache keeps an answer of the API, least of all one with a token in it', async () => {
  await using api = await startApiUnderTest()
  const user = { authorization: `Bearer ${api.ours.accessToken}` }
  const sandboxId = await api.create()
  const replies = [
    await api.call('POST', '/sandboxes', { body: { templateID: 'base' } }),
    await api.call('POST', `/sandboxes/${sandboxId}/connect`, { body: { timeout: 60 } }),
    await api.call('GET', `/sandboxes/${sandboxId}`),
    await api.call('POST', '/api-keys', { body: { name: 'x' } }),
    await api.call('POST', '/access-tokens', { headers: user, body: { name: 'x' } }),
    await api.call('GET', '/teams', { headers: user }),
    await api.call('GET', '/teams', { headers: {} }),
  ]
  assert.deepEqual(
    replies.map(({ status }) => status),
    [201, 200, 200, 201, 201, 200, 401],
  )
  for (const { headers } of replies) assert.equal(headers.get('cache-control'), 'no-store')
})
