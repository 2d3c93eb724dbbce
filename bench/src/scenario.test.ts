import assert from 'node:assert/strict'
import { test } from 'node:test'
import { interleave } from './scenario.ts'
import type { Samples, ScenarioContext } from './scenario.ts'
import { openTestBed } from './test-bed.ts'

async function play(rounds: number, options?: { readonly warmUp: boolean }) {
  await using testBed = openTestBed(() => {})
  const order: string[] = []
  const context: ScenarioContext = {
    rounds,
    signal: new AbortController().signal,
    progress: () => {},
    testBed,
  }
  const measurement = (name: string) => async (samples: Samples) => {
    order.push(name)
    samples.record(name, order.length)
  }
  const samples = await interleave(context, [measurement('a'), measurement('b')], options)
  return { order: order.join(''), row: samples.row }
}

test('each round starts with the next measurement, and the warm-up round is not counted', async () => {
  const { order, row } = await play(2)
  assert.equal(order, 'abbaab')
  assert.deepEqual(row('a', 'b'), {
    name: 'a',
    summary: { count: 2, min: 4, p50: 4, p99: 5 },
    baseline: 'b',
  })
})

test('without a warm-up every round counts', async () => {
  const { order, row } = await play(1, { warmUp: false })
  assert.equal(order, 'ba')
  assert.equal(row('b').summary.count, 1)
})
