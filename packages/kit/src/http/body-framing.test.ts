import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChunkedBody, createCountedBody } from './body-framing.ts'
import type { BodyFraming } from './body-framing.ts'

/** Reads `text` in pieces of `size` bytes and returns everything found. */
function readBy(framing: BodyFraming, text: string, size: number) {
  let data = ''
  for (let at = 0; at < text.length; at += size) {
    const body = framing.read(Buffer.from(text.slice(at, at + size), 'latin1'))
    if (!body) return { data: '', rest: 'broken' }
    data += Buffer.concat(body.data).toString('latin1')
    if (body.rest) return { data, rest: body.rest.toString('latin1') + text.slice(at + size) }
  }
  return { data, rest: undefined }
}

const chunkedBodies: [string, string, { data: string; rest: string | undefined }][] = [
  ['no data', '0\r\n\r\n', { data: '', rest: '\r\n' }],
  [
    'two chunks',
    '3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n',
    { data: 'abc0123456789', rest: '\r\n' },
  ],
  ['line ends as data', '4\r\n\r\n\r\n\r\n0\r\n\r\n', { data: '\r\n\r\n', rest: '\r\n' }],
  ['extensions', '1;a=b\r\nx\r\n0 ;c\r\n\r\n', { data: 'x', rest: '\r\n' }],
  ['leading zeros', '0001\r\nx\r\n00\r\n\r\n', { data: 'x', rest: '\r\n' }],
  ['trailers', '1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n', { data: 'x', rest: 'X-Sum: 1\r\n\r\n' }],
  ['no end yet', '5\r\nabc', { data: 'abc', rest: undefined }],
  ['no size', '\r\nabc', { data: '', rest: 'broken' }],
  ['a size that is no number', '5z\r\nabc', { data: '', rest: 'broken' }],
  ['a negative size', '-1\r\nabc', { data: '', rest: 'broken' }],
  ['a size beyond measure', 'fffffffffffff\r\nabc', { data: '', rest: 'broken' }],
  ['bare line feeds', '1\nx\n0\n\n', { data: '', rest: 'broken' }],
  ['data longer than its size', '1\r\nxyz\r\n0\r\n\r\n', { data: '', rest: 'broken' }],
  ['a line without end', `1;${'a'.repeat(2000)}`, { data: '', rest: 'broken' }],
]

for (const [name, text, expected] of chunkedBodies) {
  for (const size of [1, 2, 3, 7, 4096]) {
    test(`a chunked body with ${name} is read in pieces of ${size} bytes`, () => {
      assert.deepEqual(readBy(createChunkedBody(), text, size), expected)
    })
  }
}

for (const size of [1, 3, 5, 4096]) {
  test(`a body with Content-Length ends after its last byte, in pieces of ${size} bytes`, () => {
    const found = readBy(createCountedBody(5), 'helloGARBAGE', size)
    assert.deepEqual(found, { data: 'hello', rest: 'GARBAGE' })
  })
}

test('a body without a length ends only with the connection', () => {
  const found = readBy(createCountedBody(Infinity), 'hello', 2)
  assert.deepEqual(found, { data: 'hello', rest: undefined })
})
