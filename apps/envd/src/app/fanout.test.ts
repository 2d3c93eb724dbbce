import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { createFanout } from './fanout.ts'
import type { Subscription } from './fanout.ts'

const patient = 60_000

test('subscribers get everything from the moment they join, in order', async () => {
  const fanout = createFanout<number>(10)
  const first = fanout.subscribe()
  await fanout.publish(1)
  const second = fanout.subscribe()
  await fanout.publish(2)
  fanout.finish(3)
  assert.deepEqual(await take(first, 3), [
    { item: 1, more: true },
    { item: 2, more: true },
    { item: 3, more: false },
  ])
  assert.deepEqual(await take(second, 2), [
    { item: 2, more: true },
    { item: 3, more: false },
  ])
})

test('a full subscriber holds the producer up until it reads', async () => {
  const fanout = createFanout<number>(2)
  const slow = fanout.subscribe()
  await fanout.publish(1)
  const blocked = watch(fanout.publish(2))
  await turn()
  assert.equal(blocked.done, false)
  await slow.next(patient)
  await turn()
  assert.equal(blocked.done, true)
})

test('a full subscriber that leaves holds nobody up', async () => {
  const fanout = createFanout<number>(1)
  const gone = fanout.subscribe()
  const blocked = watch(fanout.publish(1))
  await turn()
  assert.equal(blocked.done, false)
  gone.close()
  await turn()
  assert.equal(blocked.done, true)
  assert.equal(await gone.next(patient), undefined)
})

test('the last item comes past every limit and waits for nobody', async () => {
  const fanout = createFanout<number>(1)
  const full = fanout.subscribe()
  void fanout.publish(1)
  fanout.finish(2)
  const seen = [await full.next(patient), await full.next(patient)]
  assert.deepEqual(seen, [
    { item: 1, more: true },
    { item: 2, more: false },
  ])
})

test('with nobody attached, publishing is done at once', async () => {
  const fanout = createFanout<number>(1)
  for (let item = 0; item < 100; item++) await fanout.publish(item)
})

test('silence is reported, and a closed subscription wakes its reader', async () => {
  const fanout = createFanout<number>(1)
  const reader = fanout.subscribe()
  assert.equal(await reader.next(1), 'idle')
  const next = reader.next(patient)
  reader.close()
  assert.equal(await next, undefined)
})

async function take(from: Subscription<number>, count: number): Promise<unknown[]> {
  const seen: unknown[] = []
  while (seen.length < count) seen.push(await from.next(patient))
  return seen
}

function watch(work: Promise<void>): { done: boolean } {
  const state = { done: false }
  void work.then(() => (state.done = true))
  return state
}
