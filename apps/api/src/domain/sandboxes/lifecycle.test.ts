import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toLifecycle, wakeSeconds } from './lifecycle.ts'

test('by default a sandbox is killed at its end', () => {
  assert.deepEqual(toLifecycle({}), { autoPause: false, autoPauseMemory: true, autoResume: false })
})

for (const wanted of [
  { autoPause: true, autoPauseMemory: true, autoResume: true },
  { autoPause: true, autoPauseMemory: false, autoResume: false },
  { autoPause: false, autoPauseMemory: true, autoResume: true },
]) {
  test(`${JSON.stringify(wanted)} is accepted as it is`, () => {
    assert.deepEqual(toLifecycle(wanted), wanted)
  })
}

for (const [wanted, message] of [
  [{ autoPauseMemory: false }, /needs autoPause: true/],
  [{ autoPause: false, autoPauseMemory: false }, /needs autoPause: true/],
  [{ autoPause: true, autoPauseMemory: false, autoResume: true }, /autoResume\.enabled/],
] as const) {
  test(`${JSON.stringify(wanted)} is refused`, () => {
    assert.throws(() => toLifecycle(wanted), { kind: 'invalid', message })
  })
}

for (const [createdWith, maxSeconds, expected] of [
  [undefined, 3600, 300],
  [15, 3600, 300],
  [600, 3600, 600],
  [600, 500, 500],
  [15, 60, 60],
] as const) {
  test(`woken after a timeout of ${createdWith} with at most ${maxSeconds} s: ${expected} s`, () => {
    assert.equal(wakeSeconds(createdWith, maxSeconds), expected)
  })
}
