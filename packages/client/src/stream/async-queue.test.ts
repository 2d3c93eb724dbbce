import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAsyncQueue } from './async-queue.ts'

function setup() {
  let asked = 0
  const queue = createAsyncQueue<{ readonly id: number }>(() => (asked += 1))
  const take = async () => (await queue.next()).value?.id
  return { queue, take, asked: () => asked }
}

test('items arrive in order, whether requested before or after', async () => {
  const { queue, take, asked } = setup()
  const early = [take(), take()]
  assert.deepEqual([queue.isAwaited(), asked()], [true, 2])
  for (const id of [1, 2, 3, 4]) queue.put({ id })
  assert.equal(queue.isAwaited(), false)
  assert.deepEqual(await Promise.all([...early, take(), take()]), [1, 2, 3, 4])
  assert.deepEqual([queue.isAwaited(), asked()], [false, 2])
})

test('the end comes after all items', async () => {
  const { queue, take } = setup()
  queue.put({ id: 1 })
  queue.end()
  queue.end(new Error('too late'))
  assert.equal(await take(), 1)
  assert.deepEqual(await queue.next(), { done: true, value: undefined })
})

test('a failure rejects one reader, and all others see the end', async () => {
  const { queue } = setup()
  const waiting = Promise.allSettled([queue.next(), queue.next()])
  queue.end(new Error('broken'))
  const [first, second] = await waiting
  assert.deepEqual([first.status, second.status], ['rejected', 'fulfilled'])
  assert.deepEqual(await queue.next(), { done: true, value: undefined })
})

test('an unread failure is not an unhandled rejection', async () => {
  const { queue } = setup()
  queue.end(new Error('broken'))
  await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(queue.next(), /broken/)
})

test('cleared items are not delivered', async () => {
  const { queue, take } = setup()
  queue.put({ id: 1 })
  queue.clear()
  queue.put({ id: 2 })
  assert.equal(await take(), 2)
})
