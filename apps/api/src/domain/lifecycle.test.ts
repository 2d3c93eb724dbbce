import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toLifecycle } from './lifecycle.ts'

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
