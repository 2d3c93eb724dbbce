import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRanking } from './ranking.ts'

test('the highest count is on top, and of equal ones the oldest', () => {
  const ranking = createRanking<string>()
  const seen: (string | undefined)[] = [ranking.top()]
  for (const [item, count] of [
    ['a', 1],
    ['b', 1],
    ['c', 3],
    ['a', 3],
    ['c', 2],
    ['a', 0],
    ['b', 2],
    ['c', 0],
    ['b', 0],
  ] as const) {
    ranking.set(item, count)
    seen.push(ranking.top())
  }
  assert.deepEqual(seen, [undefined, 'a', 'a', 'c', 'c', 'a', 'c', 'c', 'b', undefined])
})
