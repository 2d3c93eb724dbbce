import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { formatRelative, formatSize, formatTable } from './table.ts'

test('columns are aligned, without trailing spaces', () => {
  const table = formatTable(
    new PassThrough(),
    ['A', 'LONG', 'C'],
    [
      ['aaa', 'b', ''],
      ['a', 'b', 'c'],
    ],
  )
  assert.equal(table, 'A    LONG  C\naaa  b\na    b     c')
})

const now = new Date('2026-01-01T12:00:00Z')
for (const [time, text] of [
  ['2026-01-01T12:00:00Z', 'in 0s'],
  ['2026-01-01T12:01:59Z', 'in 119s'],
  ['2026-01-01T12:05:00Z', 'in 5m'],
  ['2026-01-01T09:00:00Z', '3h ago'],
  ['2025-12-28T12:00:00Z', '4d ago'],
] as const) {
  test(`${time} is ${text}`, () => assert.equal(formatRelative(time, now), text))
}

for (const [bytes, text] of [
  [0, '0 MB'],
  [1, '1 MB'],
  [310 * 1024 ** 2, '310 MB'],
  [1.5 * 1024 ** 3, '1.5 GB'],
] as const) {
  test(`${bytes} bytes are ${text}`, () => assert.equal(formatSize(bytes), text))
}
