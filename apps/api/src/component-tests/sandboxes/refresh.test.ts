import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

async function secondsLeft(api: ApiUnderTest, id: string, now: Date): Promise<number> {
  const { json } = await api.call('GET', `/sandboxes/${id}`)
  return (Date.parse(Object(json).endAt) - now.getTime()) / 1000
}

test('a refresh sets the requested time, at least 15 seconds, and never shortens it', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const cases = [
    { timeout: 5, body: undefined, left: 15 },
    { timeout: 5, body: {}, left: 15 },
    { timeout: 5, body: { duration: 0 }, left: 15 },
    { timeout: 5, body: { duration: 14 }, left: 15 },
    { timeout: 5, body: { duration: 3600 }, left: 3600 },
    { timeout: 600, body: { duration: 60 }, left: 600 },
    { timeout: 600, body: undefined, left: 600 },
  ]
  for (const { timeout, body, left } of cases) {
    const id = await api.create({ timeout })
    const reply = await api.call('POST', `/sandboxes/${id}/refreshes`, { body })
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal(await secondsLeft(api, id, clock.now()), left, JSON.stringify({ timeout, body }))
  }
})

test('a refresh stops at the longest life, is absent for the unknown, a conflict for the dying', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({
    clock,
    env: { ATOLL_MAX_SANDBOX_SECONDS: '100' },
  })
  const id = await api.create({ timeout: 50 })
  const refresh = (which: string) =>
    api.call('POST', `/sandboxes/${which}/refreshes`, { body: { duration: 3600 } })
  assert.equal((await refresh(id)).status, 204)
  assert.equal(await secondsLeft(api, id, clock.now()), 100)
  assert.equal((await refresh('iunknown')).status, 404)
  const release = api.node.holdKills()
  const killing = api.call('DELETE', `/sandboxes/${id}`)
  await refreshUntil(409, () => refresh(id))
  release()
  assert.equal((await killing).status, 204)
  assert.equal((await refresh(id)).status, 404)
})

async function refreshUntil(status: number, refresh: () => Promise<{ status: number }>) {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await refresh()).status === status) return
  }
  assert.fail(`never answered ${status}`)
}
