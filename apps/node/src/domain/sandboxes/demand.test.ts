import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDemand } from './demand.ts'

test('the level is the most that was wanted within ten seconds', () => {
  const demand = createDemand(0)
  for (const at of [0, 1_000, 2_000, 30_000]) demand.note(at)
  assert.equal(demand.level(30_000), 3)
})

test('the demand halves every two minutes, down to the minimum', () => {
  const demand = createDemand(1)
  for (let n = 0; n < 8; n += 1) demand.note(0)
  assert.deepEqual(
    [0, 120_000, 240_000, 3_600_000].map((at) => demand.level(at)),
    [8, 4, 2, 1],
  )
})

test('a burst is counted up to a bound', () => {
  const demand = createDemand(0)
  for (let n = 0; n < 10_000; n += 1) demand.note(n / 10)
  assert.equal(demand.level(1_000), 256)
})
