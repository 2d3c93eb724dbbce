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

test('the first call goes to a thread, quick ones are done at once', async () => {
  assert.equal(await placesOf([1, 1, 10, 0]), 'tooo')
})

test('after a slow call the next go to a thread, and then it is tried again', async () => {
  const durations = [0, 11, ...Array.from({ length: 34 }, () => 1)]
  assert.equal(await placesOf(durations), `to${'t'.repeat(32)}oo`)
})

test('a call that fails at once fails for its caller', async () => {
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
