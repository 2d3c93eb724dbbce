import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromSortToken, toSearchWords, toSortToken } from './sandbox-sort.ts'

const byCpu = { sort: 'cpu', order: 'desc', sampledUntil: 1_790_000_000 } as const
const after = { rank: 12.5, id: 'iabc123' }

test('a token gives back its position and the samples of its list', () => {
  assert.deepEqual(fromSortToken(toSortToken(after, byCpu), { sort: 'cpu', order: 'desc' }), {
    ...byCpu,
    after,
  })
  const named = { sort: 'template', order: 'asc', sampledUntil: 5 } as const
  const position = { rank: 'tools', id: 'iabc' }
  assert.deepEqual(fromSortToken(toSortToken(position, named), named), {
    ...named,
    after: position,
  })
})

test('a token is refused for another column or order', () => {
  const token = toSortToken(after, byCpu)
  for (const asked of [
    { sort: 'memory', order: 'desc' },
    { sort: 'cpu', order: 'asc' },
    { sort: 'started', order: 'desc' },
  ] as const) {
    assert.throws(() => fromSortToken(token, asked), /Invalid next token/)
  }
})

for (const text of [
  '',
  '{}',
  'null',
  '["cpu","desc",1,"x","i"]',
  '["cpu","desc","1",2,"i"]',
  '["cpu","desc",1,null,"i"]',
  '["cpu","desc",1,2,3]',
  '["cpu","desc",1,1e999,"i"]',
]) {
  test(`the token ${text} is refused`, () => {
    const token = Buffer.from(text).toString('base64url')
    assert.throws(() => fromSortToken(token, { sort: 'cpu', order: 'desc' }), /Invalid next token/)
  })
}

test('a search has at most ten words', () => {
  assert.deepEqual(toSearchWords('  a  b '), ['a', 'b'])
  assert.throws(() => toSearchWords('a b c d e f g h i j k'), /at most 10 words/)
})
