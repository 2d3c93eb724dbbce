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

test('subscribers get all items from when they subscribe, in order', async () => {
  const fanout = createFanout<Item>()
  const first = take(fanout.subscribe(), 3)
  await fanout.publish(one)
  const second = take(fanout.subscribe(), 2)
  await fanout.publish(two)
  fanout.finish(last)
  assert.deepEqual(await first, [one, two, last])
  assert.deepEqual(await second, [two, last])
})

test('publish resolves when all subscribers have asked for the next item', async () => {
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

test('a fast subscriber does not delay later items', async () => {
  const fanout = createFanout<Item>()
  const readers = [fanout.subscribe(), fanout.subscribe(), fanout.subscribe()]
  const all = readers.map((reader) => take(reader, 101))
  for (let number = 0; number < 100; number++) await fanout.publish({ number })
  fanout.finish(last)
  for (const seen of await Promise.all(all)) assert.equal(seen.length, 101)
})

test('concurrent publishers each wait for their own item', async () => {
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

test('closing a subscription releases the publisher', async () => {
  const fanout = createFanout<Item>()
  const closed = fanout.subscribe()
  const blocked = watch(fanout.publish(one))
  await turn()
  assert.equal(blocked.done, false)
  closed.close()
  await turn()
  assert.equal(blocked.done, true)
  assert.equal(await closed.next(patient), undefined)
})

test('finish does not wait for subscribers', async () => {
  const fanout = createFanout<Item>()
  const slow = fanout.subscribe()
  void fanout.publish(one)
  fanout.finish(last)
  assert.deepEqual(await take(slow, 2), [one, last])
})

test('publish resolves at once without subscribers', async () => {
  const fanout = createFanout<Item>()
  for (let number = 0; number < 100; number++) await fanout.publish({ number })
})

test('next returns idle after a timeout and undefined after a close', async () => {
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
