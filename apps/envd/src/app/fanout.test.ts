import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { createFanout } from './fanout.ts'
import type { Subscription } from './fanout.ts'

const patient = 60_000

interface Item {
  readonly number: number
}

const one = { number: 1 }
const two = { number: 2 }
const last = { number: 3 }

test('subscribers get everything from the moment they join, in order', async () => {
  const fanout = createFanout<Item>()
  const first = take(fanout.subscribe(), 3)
  await fanout.publish(one)
  const second = take(fanout.subscribe(), 2)
  await fanout.publish(two)
  fanout.finish(last)
  assert.deepEqual(await first, [one, two, last])
  assert.deepEqual(await second, [two, last])
})

test('what is given stays in use until everybody has asked for more', async () => {
  const fanout = createFanout<Item>()
  const [fast, slow] = [fanout.subscribe(), fanout.subscribe()]
  const given = watch(fanout.publish(one))
  await fast.next(patient)
  const fastWaits = fast.next(patient)
  await turn()
  assert.equal(given.done, false, 'the slow one has not seen it')
  assert.equal(await slow.next(patient), one)
  await turn()
  assert.equal(given.done, false, 'the slow one may still look at it')
  const slowWaits = slow.next(patient)
  await turn()
  assert.equal(given.done, true)
  fanout.finish(last)
  assert.deepEqual(await Promise.all([fastWaits, slowWaits]), [last, last])
})

test('who asked for more before others did holds nobody up later', async () => {
  const fanout = createFanout<Item>()
  const readers = [fanout.subscribe(), fanout.subscribe(), fanout.subscribe()]
  const all = readers.map((reader) => take(reader, 101))
  for (let number = 0; number < 100; number++) await fanout.publish({ number })
  fanout.finish(last)
  for (const seen of await Promise.all(all)) assert.equal(seen.length, 101)
})

test('two that publish at once each wait for their own', async () => {
  const fanout = createFanout<Item>()
  const reader = fanout.subscribe()
  const given = [watch(fanout.publish(one)), watch(fanout.publish(two))]
  assert.deepEqual(await take(reader, 2), [one, two])
  await turn()
  assert.deepEqual(given, [{ done: false }, { done: false }])
  void reader.next(patient)
  await turn()
  assert.deepEqual(given, [{ done: true }, { done: true }])
  reader.close()
})

test('a subscriber that leaves holds nobody up', async () => {
  const fanout = createFanout<Item>()
  const gone = fanout.subscribe()
  const blocked = watch(fanout.publish(one))
  await turn()
  assert.equal(blocked.done, false)
  gone.close()
  await turn()
  assert.equal(blocked.done, true)
  assert.equal(await gone.next(patient), undefined)
})

test('the last item waits for nobody', async () => {
  const fanout = createFanout<Item>()
  const slow = fanout.subscribe()
  void fanout.publish(one)
  fanout.finish(last)
  assert.deepEqual(await take(slow, 2), [one, last])
})

test('with nobody attached, publishing is done at once', async () => {
  const fanout = createFanout<Item>()
  for (let number = 0; number < 100; number++) await fanout.publish({ number })
})

test('silence is reported, and a closed subscription wakes its reader', async () => {
  const fanout = createFanout<Item>()
  const reader = fanout.subscribe()
  assert.equal(await reader.next(1), 'idle')
  const next = reader.next(patient)
  reader.close()
  assert.equal(await next, undefined)
})

async function take(from: Subscription<Item>, count: number): Promise<unknown[]> {
  const seen: unknown[] = []
  while (seen.length < count) seen.push(await from.next(patient))
  return seen
}

function watch(work: Promise<void>): { done: boolean } {
  const state = { done: false }
  void work.then(() => (state.done = true))
  return state
}
