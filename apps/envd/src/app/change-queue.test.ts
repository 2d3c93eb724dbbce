import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { Change } from '../domain/watch/watch.ts'
import { createChangeQueue } from './change-queue.ts'

function change(name: string): Change {
  return { name, kind: 'create' }
}

function setup(limit: number) {
  let failures = 0
  const queue = createChangeQueue(() => (failures += 1), limit)
  return { queue, failures: () => failures }
}

test('changes come in order, with next or with drain', async () => {
  const { queue } = setup(10)
  for (const name of ['a', 'b', 'c']) queue.changed(change(name))
  assert.deepEqual(await queue.next(1000), change('a'))
  assert.deepEqual(queue.drain(), [change('b'), change('c')])
  assert.deepEqual(queue.drain(), [])
})

test('a waiting reader wakes at a change, a timeout and a close', async () => {
  const { queue } = setup(10)
  const first = queue.next(60_000)
  queue.changed(change('a'))
  assert.deepEqual(await first, change('a'))
  assert.equal(await queue.next(1), 'idle')
  const last = queue.next(60_000)
  queue.close()
  assert.equal(await last, undefined)
  queue.changed(change('b'))
  assert.equal(await queue.next(1), undefined)
})

test('past the limit the queue fails and the watch is closed', async () => {
  const { queue, failures } = setup(3)
  for (const name of ['a', 'b', 'c']) queue.changed(change(name))
  assert.deepEqual(await queue.next(1), change('a'))
  queue.changed(change('d'))
  assert.equal(failures(), 0)
  queue.changed(change('e'))
  queue.changed(change('f'))
  assert.equal(failures(), 1)
  assert.throws(() => queue.drain(), Fault)
  assert.throws(() => queue.drain(), Fault)
  await assert.rejects(queue.next(1), { reason: 'watch_overflow' })
})

test("a reader that never catches up does not grow the queue's memory", async () => {
  const { queue } = setup(4)
  queue.changed(change('0'))
  for (let n = 1; n < 100; n += 1) {
    queue.changed(change(String(n)))
    assert.deepEqual(await queue.next(1), change(String(n - 1)))
  }
  assert.deepEqual(queue.drain(), [change('99')])
})
