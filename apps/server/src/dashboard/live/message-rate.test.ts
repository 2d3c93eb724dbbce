import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMessageRate } from './message-rate.ts'

test('messages beyond the burst are slowed down to the rate', () => {
  const rate = createMessageRate({ perSecond: 10, burst: 3 })
  assert.deepEqual([rate.count(0), rate.count(0), rate.count(0)], [0, 0, 0])
  assert.equal(rate.count(0), 100)
  assert.equal(rate.count(100), 100)
  assert.equal(rate.count(10_000), 0)
})
