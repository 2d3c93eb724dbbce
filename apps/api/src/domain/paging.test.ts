import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromToken, toToken } from './paging.ts'

const position = { startedAt: new Date('2026-01-02T03:04:05.678Z'), id: 'iabc123' }

for (const order of ['asc', 'desc'] as const) {
  test(`a token of ${order} order gives its position back`, () => {
    assert.deepEqual(fromToken(toToken(position, order), order), position)
  })
  test(`a token of ${order} order is refused for the other`, () => {
    const other = order === 'asc' ? 'desc' : 'asc'
    assert.throws(() => fromToken(toToken(position, order), other), /Invalid next token/)
  })
}

for (const [name, text] of Object.entries({
  nothing: '',
  'no separator': '2026-01-02T03:04:05.678Z',
  'a bad time': '2026-99-99T03:04:05.678Z__iabc',
  'an empty id': '2026-01-02T03:04:05.678Z__',
  'a bad id': "2026-01-02T03:04:05.678Z__i' or 1=1",
})) {
  test(`a token with ${name} is refused`, () => {
    const token = Buffer.from(text).toString('base64url')
    assert.throws(() => fromToken(token, 'desc'), /Invalid next token/)
  })
}
