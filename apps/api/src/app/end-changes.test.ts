import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEndChanges } from './end-changes.ts'

const now = new Date('2026-01-01T00:00:00Z')

function countNudges(endsInMs: readonly (number | undefined)[]): number {
  let nudges = 0
  const onEndChanged = createEndChanges({ now: () => now }, () => (nudges += 1))
  for (const ms of endsInMs)
    onEndChanged({ endAt: ms === undefined ? undefined : new Date(now.getTime() + ms) })
  return nudges
}

test('an end before the next expiry pass starts a pass', () => {
  assert.equal(countNudges([-1, 0, 999]), 3)
})

test('a later end, or none, waits for the pass that comes anyway', () => {
  assert.equal(countNudges([1_000, 3_600_000, undefined]), 0)
})
