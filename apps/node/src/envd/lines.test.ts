import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLines } from './lines.ts'

const bytes = (text: string) => Buffer.from(text)

test('pieces become lines, without blank ones', () => {
  const lines = createLines()
  assert.deepEqual(lines.add(bytes('one\ntw')), ['one'])
  assert.deepEqual(lines.add(bytes('o\r\n\n  \n three')), ['two'])
  assert.deepEqual(lines.rest(), ['three'])
  assert.deepEqual(createLines().rest(), [])
})

test('a character may come in two pieces', () => {
  const lines = createLines()
  const euro = bytes('€\n')
  assert.deepEqual([...lines.add(euro.subarray(0, 1)), ...lines.add(euro.subarray(1))], ['€'])
})

test('a carriage return ends a line, as in progress output', () => {
  assert.deepEqual(createLines().add(bytes('10%\r20%\r100%\n')), ['10%', '20%', '100%'])
})

test('a line without an end is truncated, and not buffered', () => {
  const lines = createLines()
  const cut = lines.add(bytes('x'.repeat(10_000)))
  assert.deepEqual(
    cut.map(({ length }) => length),
    [4096, 4096, 1808],
  )
  assert.deepEqual(lines.rest(), [])
})
