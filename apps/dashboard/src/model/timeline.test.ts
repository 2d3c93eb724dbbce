import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toMarks } from './timeline.ts'

test('events and denied connections are on one axis, in order, and hostile names are visible', () => {
  const at = (second: number) => new Date(second * 1000).toISOString()
  const common = { protocol: 'tcp', port: 443, count: 3, firstAt: at(1) } as const
  const marks = toMarks(
    [
      { at: at(1), kind: 'created' },
      { at: at(9), kind: 'ended', reason: 'was killed\u202e' },
      { at: at(3), kind: 'forked', sandboxID: 'icopy' },
    ],
    [
      { ...common, verdict: 'denied', name: 'evil\u202e.example', lastAt: at(5) },
      { ...common, verdict: 'allowed', name: 'good.example', lastAt: at(6) },
    ],
  )
  assert.deepEqual(
    marks.map(({ at: time, label }) => [time, label]),
    [
      [1, 'Created'],
      [3, 'Forked: icopy'],
      [5, 'Denied: evil<U+202E>.example (3 times)'],
      [9, 'Ended: was killed<U+202E>'],
    ],
  )
})
