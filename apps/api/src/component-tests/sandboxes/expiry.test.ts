import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '@atoll/kit/clock'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { onPostgres } from '../../sim/store.ts'

/** Whether the sandbox is running and ends that many seconds from now. */
async function keepsRunningFor(
  api: ApiUnderTest,
  id: string,
  clock: Clock,
  seconds: number,
): Promise<boolean> {
  const { state, endAt } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
  return state === 'running' && Date.parse(endAt) === clock.now().getTime() + seconds * 1000
}

test('a sandbox ends at its time, not before, and says so', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const short = await api.create({ timeout: 10 })
  const long = await api.create({ timeout: 11 })
  clock.advance(9.999)
  // Changing an end time triggers an expiry pass, which must not end either sandbox.
  await api.call('POST', `/sandboxes/${long}/connect`, { body: { timeout: 0 } })
  assert.deepEqual([...api.node.running.keys()], [short, long])
  clock.advance(0.001)
  // The sandbox ends on the node slightly before its record is closed.
  await waitFor('the end', async () => {
    const { status, json } = await api.call('GET', `/sandboxes/${short}`)
    const reason = `Sandbox ${short} was not found: it reached the end of its timeout`
    return status === 404 && Object(json).message === reason
  })
  assert.deepEqual([...api.node.running.keys()], [long])
})

test('in real time sandboxes end when they are due', async () => {
  await using api = await startApiUnderTest()
  const created = await Promise.all(
    [1, 1, 2, 1].map(async (timeout) => {
      const earliest = Date.now() + timeout * 1000
      return { id: await api.create({ timeout }), earliest }
    }),
  )
  for (const { id, earliest } of created.toSorted((a, b) => a.earliest - b.earliest)) {
    await waitFor('its end', () => !api.node.running.has(id), { intervalMs: 1 })
    assert.ok(Date.now() >= earliest, 'not before it is due; how late is a matter of the machine')
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

test('a slow kill of one sandbox does not delay the others', async () => {
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

test('the end time survives a restart, also if it passed meanwhile', async () => {
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

test('a sandbox with auto-pause is paused at its timeout, with or without its memory', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const whole = await api.create({ timeout: 10, autoPause: true })
  const files = await api.create({ timeout: 10, autoPause: true, autoPauseMemory: false })
  const killed = await api.create({ timeout: 10, autoResume: { enabled: true } })
  clock.advance(9.999)
  await api.call('POST', `/sandboxes/${whole}/connect`, { body: { timeout: 0 } })
  assert.equal(api.node.running.size, 3)
  clock.advance(0.001)
  await waitFor('the pauses', () => api.node.paused.size === 2)
  await waitFor('the end', () => api.node.running.size === 0)
  assert.equal(api.node.paused.get(whole)?.keepsMemory, true)
  assert.equal(api.node.paused.get(files)?.keepsMemory, false)
  assert.deepEqual(api.node.killed, [killed])
  for (const id of [whole, files]) {
    await waitFor('the record', async () => {
      const { state, endAt } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
      return state === 'paused' && endAt === clock.now().toISOString()
    })
  }
  const again = await api.call('POST', `/sandboxes/${whole}/connect`, { body: { timeout: 5 } })
  assert.equal(again.status, 201)
  clock.advance(5)
  await waitFor('the next pause', () => api.node.paused.size === 2)
})

test('a node without memory pauses with the files alone', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  api.node.dropMemorySupport()
  const id = await api.create({ timeout: 10, autoPause: true })
  clock.advance(10)
  await waitFor('the pause', () => api.node.paused.get(id)?.keepsMemory === false)
})

test('a sandbox that cannot be paused runs on, is tried again, and is never lost', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 10, autoPause: true })
  api.node.fail('pause', Code.ResourceExhausted)
  clock.advance(10)
  for (const seconds of [1, 2, 4]) {
    const attempts = api.node.begun('pause')
    await waitFor('another try', () => keepsRunningFor(api, id, clock, seconds))
    assert.ok(api.node.begun('pause') - attempts <= 1)
    clock.advance(seconds)
  }
  api.node.fail('pause', undefined)
  await waitFor('the pause', () => api.node.paused.has(id), { timeoutMs: 30_000 })
  assert.deepEqual(api.node.killed, [])
})

/** Creates an auto-pausing sandbox and a clock; each advance of the clock triggers an expiry pass. */
async function setupAutoPause() {
  const clock = manualClock()
  const api = await startApiUnderTest({ clock })
  const other = await api.create({ timeout: 3600 })
  const id = await api.create({ timeout: 10, autoPause: true })
  const goBy = async (seconds: number) => {
    clock.advance(seconds)
    // Changing an end time triggers an expiry pass.
    await api.call('POST', `/sandboxes/${other}/connect`, { body: { timeout: 0 } })
  }
  /** Waits for each failed pause, then advances the clock to the next retry. */
  const tryInVain = async (...waits: readonly number[]) => {
    for (const seconds of waits) {
      await waitFor('it to run on', () => keepsRunningFor(api, id, clock, seconds))
      await goBy(seconds)
    }
  }
  return { api, id, goBy, tryInVain }
}

for (const code of [Code.FailedPrecondition, Code.ResourceExhausted, Code.Internal] as const) {
  test(`memory that cannot be kept (${Code[code]}) is given up after four tries, and the files are kept`, async () => {
    const { api, id, goBy, tryInVain } = await setupAutoPause()
    await using _ = api
    api.node.fail('keepMemory', code)
    await goBy(10)
    await tryInVain(1, 2, 4, 8)
    await waitFor('the pause', () => api.node.paused.get(id)?.keepsMemory === false)
    assert.equal(api.node.begun('keepMemory'), 4)
    assert.deepEqual(api.node.killed, [])
  })
}

test('a node that does not answer says nothing against the memory', async () => {
  const { api, id, goBy, tryInVain } = await setupAutoPause()
  await using _ = api
  api.node.fail('all', Code.Unavailable)
  await goBy(10)
  await tryInVain(1, 2, 4, 8, 16, 32, 60)
  api.node.fail('all', undefined)
  await goBy(60)
  await waitFor('the pause', () => api.node.paused.get(id)?.keepsMemory === true)
})

test('a sandbox that was given more time is tried anew', async () => {
  const { api, id, goBy, tryInVain } = await setupAutoPause()
  await using _ = api
  api.node.fail('keepMemory', Code.FailedPrecondition)
  for (let round = 0; round < 2; round += 1) {
    await goBy(10)
    await tryInVain(1, 2)
    const body = { timeout: 10 }
    await waitFor('more time', async () => {
      return (await api.call('POST', `/sandboxes/${id}/timeout`, { body })).status === 204
    })
  }
  api.node.fail('keepMemory', undefined)
  await goBy(10)
  await waitFor('the pause', () => api.node.paused.get(id)?.keepsMemory === true)
})

test('while the node does not answer nothing is paused and nothing lost', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 10, autoPause: true })
  api.node.fail('all', Code.Unavailable)
  clock.advance(10)
  await waitFor('more time', async () => {
    const { endAt } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
    return endAt > clock.now().toISOString()
  })
  api.node.fail('all', undefined)
  clock.advance(60)
  await waitFor('the pause', () => api.node.paused.has(id))
})

test('a kill during an automatic pause wins, and is not tried again', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 10, autoPause: true })
  const release = api.node.hold('pause')
  clock.advance(10)
  await waitFor('the pause', () => api.node.begun('pause') === 1)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  assert.deepEqual([api.node.running.size, api.node.paused.size], [0, 0])
})

test('two processes pause an expired sandbox only once', onPostgres, async () => {
  const clock = manualClock()
  await using first = await startApiUnderTest({ clock })
  await using second = await startApiUnderTest({ clock, beside: first })
  const id = await second.create({ timeout: 10, autoPause: true })
  clock.advance(10)
  await waitFor('the pause', async () => {
    return Object((await first.call('GET', `/sandboxes/${id}`)).json).state === 'paused'
  })
  await Promise.all([first.restart(), second.restart()])
  assert.equal(first.node.begun('pause'), 1)
})
