import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMoveDue, retryTime } from './sandbox-move.ts'

const now = new Date('2026-01-01T00:00:00.000Z')
const seconds = (time: Date) => (time.getTime() - now.getTime()) / 1000

test('a move is tried again after a minute, and after ten times its break', () => {
  assert.deepEqual(
    [undefined, 0, 6_000, 61_000].map((breakMs) => seconds(retryTime(now, breakMs))),
    [60, 60, 60, 610],
  )
})

test('a move that began or failed holds up the next attempt until its time, or until a new start', () => {
  const retryAt = retryTime(now)
  const before = new Date(retryAt.getTime() - 1)
  for (const kind of [
    { kind: 'failed', problem: 'full' },
    { kind: 'underway', endAt: now },
  ] as const) {
    const move = { ...kind, generation: 3, retryAt }
    assert.deepEqual(
      [before, retryAt].map((time) => isMoveDue({ generation: 3, move }, time)),
      [false, true],
    )
    assert.equal(isMoveDue({ generation: 4, move }, before), true)
    assert.equal(isMoveDue({ generation: 3, move: { ...move, retryAt: undefined } }, before), true)
  }
  assert.equal(isMoveDue({ generation: 3, move: undefined }, now), true)
})
