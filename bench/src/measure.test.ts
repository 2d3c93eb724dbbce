import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ratio, rotate, summarize } from './measure.ts'

const rows: [string, number[], object][] = [
  ['a single sample is every percentile', [7], { count: 1, min: 7, p50: 7, p99: 7 }],
  [
    'the median of an even number of samples is the lower middle',
    [4, 1, 3, 2],
    { count: 4, min: 1, p50: 2, p99: 4 },
  ],
  [
    'the median of an odd number of samples is the middle',
    [30, 10, 20],
    { count: 3, min: 10, p50: 20, p99: 30 },
  ],
  ['samples are sorted as numbers', [9, 10, 100], { count: 3, min: 9, p50: 10, p99: 100 }],
]
for (const [name, samples, expected] of rows) {
  test(name, () => assert.deepEqual(summarize(samples), expected))
}

test('with 100 samples p99 is not the largest', () => {
  const samples = Array.from({ length: 100 }, (_, index) => index + 1)
  assert.deepEqual(summarize(samples), { count: 100, min: 1, p50: 50, p99: 99 })
})

test('a row without samples is an error', () =>
  assert.throws(() => summarize([]), /without samples/))

test('the ratio compares medians', () => {
  assert.equal(ratio(summarize([1, 30, 90]), summarize([10, 20, 99])), 1.5)
})

test('rotate changes the start and keeps all items', () => {
  assert.deepEqual(
    [0, 1, 5].map((by) => rotate(['a', 'b', 'c'], by).join('')),
    ['abc', 'bca', 'cab'],
  )
  assert.deepEqual(rotate([], 3), [])
})
