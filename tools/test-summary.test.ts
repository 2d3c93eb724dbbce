import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOutcomes } from './test-summary.ts'

test('the last summary counts, with or without colours', () => {
  const output =
    'ℹ pass 99\n✔ a test\n\u001b[34mℹ tests 7\u001b[39m\n\u001b[34mℹ pass 4\u001b[39m\n' +
    '\u001b[34mℹ fail 2\u001b[39m\nℹ cancelled 1\nℹ skipped 0\n'
  assert.deepEqual(countOutcomes(output), { passed: 4, failed: 3 })
})

test('output without a summary counts nothing', () => {
  assert.deepEqual(countOutcomes('ok    lint  1.0 s\n'), { passed: 0, failed: 0 })
})
