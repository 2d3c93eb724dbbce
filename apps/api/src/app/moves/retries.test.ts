import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRetries } from './retries.ts'

function setUp() {
  let now = 1_000
  const retries = createRetries({ leastMs: 5, mostMs: 30, nowMs: () => now })
  const waitOf = (id: string): number => {
    const began = now
    while (!retries.isDue(id)) now += 1
    return now - began
  }
  return { retries, waitOf, advance: (ms: number) => void (now += ms) }
}

test('the wait doubles with each failure up to a limit, and a success resets it', () => {
  const { retries, waitOf } = setUp()
  const fail = () => {
    retries.failed('a')
    return waitOf('a')
  }
  assert.equal(waitOf('a'), 0)
  assert.deepEqual([fail(), fail(), fail(), fail(), fail()], [5, 10, 20, 30, 30])
  assert.equal(waitOf('b'), 0)
  retries.prune()
  assert.equal(fail(), 30)
  retries.succeeded('a')
  assert.equal(fail(), 5)
})

test('a sandbox that is not tried again is forgotten', () => {
  const { retries, waitOf, advance } = setUp()
  retries.failed('a')
  retries.failed('a')
  advance(10 + 31)
  retries.prune()
  retries.failed('a')
  assert.equal(waitOf('a'), 5)
})
