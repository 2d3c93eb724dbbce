import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCircuitBreaker } from './circuit-breaker.ts'

function openCircuit() {
  const breaker = createCircuitBreaker()
  for (const _ of [1, 2, 3]) breaker.failed(0)
  return breaker
}

test('three failures in a row take a node out; a success between them does not', () => {
  const breaker = createCircuitBreaker()
  breaker.failed(0)
  breaker.failed(0)
  assert.equal(breaker.isClosed(0), true)
  breaker.succeeded()
  breaker.failed(0)
  breaker.failed(0)
  assert.equal(breaker.isClosed(0), true)
  breaker.failed(0)
  assert.deepEqual([breaker.isClosed(0), breaker.isClosed(4_999)], [false, false])
})

test('after a pause one probe at a time goes to the node, and its success closes the circuit', () => {
  const breaker = openCircuit()
  assert.equal(breaker.isClosed(5_000), true)
  breaker.begin(5_000)
  assert.equal(breaker.isClosed(5_000), false)
  breaker.undecided()
  assert.equal(breaker.isClosed(5_000), true)
  breaker.begin(5_000)
  breaker.succeeded()
  assert.equal(breaker.isClosed(5_000), true)
  breaker.failed(5_000)
  assert.equal(breaker.isClosed(5_000), true)
})

test('each failed probe doubles the pause, up to a minute', () => {
  const breaker = openCircuit()
  let nowMs = 5_000
  for (const pauseMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
    breaker.begin(nowMs)
    breaker.failed(nowMs)
    assert.deepEqual(
      [breaker.isClosed(nowMs + pauseMs - 1), breaker.isClosed(nowMs + pauseMs)],
      [false, true],
    )
    nowMs += pauseMs
  }
})
