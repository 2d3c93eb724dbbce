import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { startPauseAwareTimer } from './pause-aware-timer.ts'

function setup(t: TestContext, ms: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 1000
  let acted = 0
  const timer = startPauseAwareTimer(
    ms,
    () => (acted += 1),
    () => nowMs,
  )
  /** Advances the clock by `passedMs`, plus `lateMs` that the timers do not see. */
  const pass = (passedMs: number, lateMs = 0) => {
    nowMs += passedMs + lateMs
    t.mock.timers.tick(passedMs)
  }
  return { timer, pass, acted: () => acted }
}

test('the timer fires once, even after a long time', (t) => {
  const { pass, acted } = setup(t, 12_000)
  for (let second = 0; second < 11; second += 1) pass(1000)
  pass(999)
  assert.equal(acted(), 0)
  pass(1)
  assert.equal(acted(), 1)
  pass(60_000)
  assert.equal(acted(), 1)
})

test('a pause does not count, a delay does', (t) => {
  const { pass, acted } = setup(t, 20_000)
  pass(5000, 86_400_000)
  pass(5000, 4000)
  pass(5000)
  assert.equal(acted(), 0)
  pass(1000)
  assert.equal(acted(), 1)
})

test('a stopped timer does not fire', (t) => {
  const { timer, pass, acted } = setup(t, 7000)
  pass(5000)
  timer.stop()
  pass(5000)
  assert.equal(acted(), 0)
})
