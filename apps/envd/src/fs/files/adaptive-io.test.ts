import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAdaptiveIo } from './adaptive-io.ts'

/** Returns one letter per call: o for synchronous, t for a thread. */
async function placesOf(durationsMs: readonly number[]): Promise<string> {
  let nowMs = 0
  const call = createAdaptiveIo(() => nowMs)
  let places = ''
  for (const durationMs of durationsMs) {
    const callSync = () => {
      nowMs += durationMs
      return 'o'
    }
    places += await call(callSync, () => Promise.resolve('t'))
  }
  return places
}

test('the first call uses a thread, fast ones run synchronously', async () => {
  assert.equal(await placesOf([1, 1, 10, 0]), 'tooo')
})

test('after a slow call the next ones use a thread, then calls are synchronous again', async () => {
  const durations = [0, 11, ...Array.from({ length: 34 }, () => 1)]
  assert.equal(await placesOf(durations), `to${'t'.repeat(32)}oo`)
})

test('an error of a synchronous call reaches the caller', async () => {
  const call = createAdaptiveIo()
  await call(
    () => 1,
    () => Promise.resolve(1),
  )
  const fail = () => {
    throw new Error('no room')
  }
  await assert.rejects(
    call(fail, () => Promise.resolve()),
    /no room/,
  )
})
