import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'

test('a timeline has the pauses, forks and the end of a sandbox, for its team alone', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  await api.call('POST', `/sandboxes/${id}/pause`)
  await api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 3600 } })
  const forked = await api.call('POST', `/sandboxes/${id}/fork`, { body: { timeout: 3600 } })
  const [{ sandbox }] = Object(forked.json)
  await api.call('DELETE', `/sandboxes/${id}`)
  await api.restart()
  const { status, json } = await api.call('GET', `/sandboxes/${id}/timeline`)
  assert.equal(status, 200)
  const events: { kind: string; sandboxID?: string; reason?: string }[] = Object(json).events
  assert.deepEqual(
    events.map(({ kind, sandboxID, reason }) => [kind, sandboxID, reason]),
    [
      ['created', undefined, undefined],
      ['paused', undefined, undefined],
      ['resumed', undefined, undefined],
      ['copied', undefined, undefined],
      ['forked', sandbox.sandboxID, undefined],
      ['ended', undefined, 'was killed'],
    ],
  )
  const headers = { 'x-api-key': api.theirs.apiKey }
  assert.equal((await api.call('GET', `/sandboxes/${id}/timeline`, { headers })).status, 404)
})

test('a timeline keeps the newest 200 events', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  await api.withStores(async ({ sandboxes }) => {
    for (let round = 0; round < 110; round += 1) {
      for (const state of ['paused', 'running'] as const) {
        await sandboxes.update(id, (current) => ({ ...current, state }))
      }
    }
  })
  const { json } = await api.call('GET', `/sandboxes/${id}/timeline`)
  const count = Object(json).events.length
  assert.ok(count > 1 && count <= 201, String(count))
})
