import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outdated } from './log.ts'

test('logs go by age, and by size the oldest first', () => {
  const log = (sandboxId: string, writtenAtMs: number, sizeBytes = 10) => ({
    sandboxId,
    writtenAtMs,
    sizeBytes,
  })
  const logs = [log('a', 900), log('b', 1000), log('c', 400), log('d', 950, 50)]
  const gone = (limit: { ageMs: number; sizeBytes: number }) =>
    outdated(logs, 1000, limit).map(({ sandboxId }) => sandboxId)
  assert.deepEqual(gone({ ageMs: 1000, sizeBytes: 80 }), [])
  assert.deepEqual(gone({ ageMs: 500, sizeBytes: 80 }), ['c'])
  assert.deepEqual(gone({ ageMs: 1000, sizeBytes: 79 }), ['c'])
  assert.deepEqual(gone({ ageMs: 1000, sizeBytes: 60 }), ['a', 'c'])
})
