import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTokenBucket } from './token-bucket.ts'

test('after a burst, tokens are refilled at the configured rate', () => {
  let now = 5000
  const bucket = createTokenBucket({ perSecond: 50, burst: 100 }, () => now)
  const takeAll = () => {
    let taken = 0
    while (bucket.take()) taken += 1
    return taken
  }
  assert.equal(takeAll(), 100)
  now += 10
  assert.equal(takeAll(), 0)
  now += 10
  assert.equal(takeAll(), 1)
  now += 1000
  assert.equal(takeAll(), 50)
  now += 3_600_000
  assert.equal(takeAll(), 100)
})
