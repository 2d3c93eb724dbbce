import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paceOf } from './pace.ts'

const usual = () => 0.5

for (const [nodeCount, expectedMs] of [
  [1, 5_000],
  [3, 5_000],
  [50, 5_000],
  [100, 10_000],
  [1_000, 30_000],
] as const) {
  test(`each of ${nodeCount} nodes is visited every ${expectedMs} ms`, () => {
    assert.equal(paceOf(5_000, nodeCount, usual), expectedMs)
  })
}

test('longer intervals stay, and visits of several nodes are spread', () => {
  assert.equal(paceOf(60_000, 1_000, usual), 60_000)
  assert.deepEqual([paceOf(10_000, 2, () => 0), paceOf(10_000, 1, () => 0)], [5_000, 10_000])
})
