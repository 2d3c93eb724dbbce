import assert from 'node:assert/strict'
import { test } from 'node:test'
import { framingOf, parseHead } from './response-head.ts'

test('status and headers are parsed', () => {
  const head = parseHead(
    'HTTP/1.1 404 Not Found\r\nContent-Type: text/plain \r\nX-a:\t1,  2\r\nx-a: 3',
  )
  assert.equal(head?.status, 404)
  assert.deepEqual(
    [...head.headers],
    [
      ['content-type', 'text/plain'],
      ['x-a', '1,  2, 3'],
    ],
  )
})

for (const line of ['HTTP/1.0 200 OK', 'HTTP/1.1 200 ', 'HTTP/1.1 200', 'HTTP/1.1 599 \xe4']) {
  test(`${JSON.stringify(line)} is a valid status line`, () => {
    assert.ok(parseHead(`${line}\r\nEmpty:\r\nSpaces: \t `))
  })
}

const noHeads = [
  '',
  'HTTP/2 200 OK',
  'HTTP/1.1 OK',
  'HTTP/1.1 99 Low',
  'HTTP/1.1 600 High',
  'HTTP/1.1 2000 OK',
  'GET / HTTP/1.1',
  'HTTP/1.1 200 OK\r\nno colon',
  'HTTP/1.1 200 OK\r\n: no name',
  'HTTP/1.1 200 OK\r\nspace : in name',
  'HTTP/1.1 200 OK\r\na: b\r\n folded',
  'HTTP/1.1 200 OK\r\na: b\nc: d',
  'HTTP/1.1 200 OK\r\na: b\0',
]

for (const text of noHeads) {
  test(`${JSON.stringify(text)} is not a valid response head`, () =>
    assert.equal(parseHead(text), undefined))
}

const bodies: [string, string, string | undefined][] = [
  ['chunks', 'Transfer-Encoding: Chunked', 'abc'],
  ['a length', 'Content-Length: 4', '3\r\na'],
  ['no word of its end', 'X: y', '3\r\nabc\r\n0\r\n\r\n'],
  ['two kinds of framing', 'Transfer-Encoding: chunked\r\nContent-Length: 4', undefined],
  ['another coding', 'Transfer-Encoding: gzip, chunked', undefined],
  ['two lengths', 'Content-Length: 4\r\nContent-Length: 4', undefined],
  ['a negative length', 'Content-Length: -4', undefined],
  ['a length in hexadecimal', 'Content-Length: 0x4', undefined],
  ['a length beyond measure', `Content-Length: ${'9'.repeat(40)}`, undefined],
]

for (const [name, headers, expected] of bodies) {
  test(`a body with ${name} is ${expected === undefined ? 'refused' : 'read'}`, () => {
    const head = parseHead(`HTTP/1.1 200 OK\r\n${headers}`)
    assert.ok(head)
    const found = framingOf(head)?.read(Buffer.from('3\r\nabc\r\n0\r\n\r\n'))
    assert.equal(found && Buffer.concat(found.data).toString(), expected)
  })
}
