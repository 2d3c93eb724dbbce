import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { manualClock, startApiUnderTest } from './sim/api.ts'

test('a sandbox ends at its time, not before, and says so', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const short = await api.create({ timeout: 10 })
  const long = await api.create({ timeout: 11 })
  clock.advance(9.999)
  // Moving an end makes a pass happen now: it must leave both alone.
  await api.call('POST', `/sandboxes/${long}/connect`, { body: { timeout: 0 } })
  assert.deepEqual([...api.node.running.keys()], [short, long])
  clock.advance(0.001)
  await waitFor('the end', () => !api.node.running.has(short))
  const { status, json } = await api.call('GET', `/sandboxes/${short}`)
  assert.deepEqual(
    [status, Object(json).message],
    [404, `Sandbox ${short} was not found: it reached the end of its timeout`],
  )
  assert.deepEqual([...api.node.running.keys()], [long])
})

test('in real time sandboxes end when they are due', async () => {
  await using api = await startApiUnderTest()
  const created = await Promise.all([1, 1, 2, 1].map((timeout) => api.create({ timeout })))
  const ends = new Map<string, number>()
  for (const id of created) {
    const { endAt } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
    ends.set(id, Date.parse(endAt))
  }
  for (const [id, endAt] of [...ends].toSorted(([, a], [, b]) => a - b)) {
    await waitFor('its end', () => !api.node.running.has(id), { intervalMs: 1 })
    assert.ok(Date.now() >= endAt, 'not before it is due; how late is a matter of the machine')
  }
})

test('timeout 0 ends a sandbox at once', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 600 })
  const { status } = await api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout: 0 } })
  assert.equal(status, 204)
  await waitFor('the end', () => api.node.running.size === 0)
})

test('a sandbox whose time was extended lives on', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const extended = await api.create({ timeout: 10 })
  const other = await api.create({ timeout: 10 })
  await api.call('POST', `/sandboxes/${extended}/timeout`, { body: { timeout: 100 } })
  clock.advance(50)
  await waitFor('the end of the other', () => !api.node.running.has(other))
  assert.equal((await api.call('GET', `/sandboxes/${extended}`)).status, 200)
})

test('a slow end of one sandbox does not hold up the others', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const slow = await api.create({ timeout: 10 })
  const quick = await api.create({ timeout: 20 })
  const release = api.node.holdKills()
  clock.advance(10)
  await waitFor(
    'the first kill',
    async () => (await api.call('GET', `/sandboxes/${slow}`)).status === 404,
  )
  clock.advance(10)
  await waitFor(
    'the second',
    async () => (await api.call('GET', `/sandboxes/${quick}`)).status === 404,
  )
  release()
  await waitFor('both ends', () => api.node.running.size === 0)
})

test('the end of a sandbox outlives a restart, also one that fell into the pause', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const during = await api.create({ timeout: 10 })
  const later = await api.create({ timeout: 20 })
  await api.stop()
  clock.advance(15)
  assert.equal(api.node.running.size, 2)
  await api.restart()
  await waitFor('the first end', () => !api.node.running.has(during))
  assert.ok(api.node.running.has(later))
  clock.advance(5)
  await waitFor('the second end', () => !api.node.running.has(later))
})
