import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureCpuMs } from '@atoll/kit/cpu-time'
import { parseMultipart } from './multipart.ts'
import { parsePartHeaders } from './part-headers.ts'

/** Yields all chunks in the same buffer, to catch code that keeps them. */
async function* inPieces(body: Buffer, size: number) {
  const memory = Buffer.alloc(size)
  for (let at = 0; at < body.length; at += size) {
    yield memory.subarray(0, body.copy(memory, 0, at, at + size))
    memory.fill('!')
  }
}

async function parse(body: string | Buffer, boundary = 'B', size = 7) {
  const parts = []
  for await (const { name, filename, body: content } of parseMultipart(
    inPieces(Buffer.from(body), size),
    boundary,
  )) {
    let text = ''
    for await (const piece of content) text += piece.toString()
    parts.push([name, filename, text])
  }
  return parts
}

const disposition = 'Content-Disposition: form-data; name=a'
const tricky = '\r\n--\r\r\n-\r\n--BB\r\n--\n--B\r'

test('the parser returns the same parts however the body is chunked', async () => {
  const body =
    `ignored\r\n--C\r\n--B\r\n${disposition}\r\n\r\none\r\n` +
    `--B  \r\ncontent-disposition: form-data; name="b"; filename="f"\r\nX: y\r\n\r\n${tricky}x\r\n` +
    `--B\r\n\r\nno headers\r\n--B\r\n${disposition}\r\n\r\n\r\n--B--\r\nignored`
  const expected = [
    ['a', undefined, 'one'],
    ['b', 'f', tricky.slice(0, 10)],
    [undefined, undefined, 'no headers'],
    ['a', undefined, ''],
  ]
  const whole = await parse(body, 'B', 10_000)
  assert.deepEqual([whole[0], whole.at(-1)], [expected[0], expected[3]])
  for (let size = 1; size < 40; size += 1) assert.deepEqual(await parse(body, 'B', size), whole)
})

test('an unread part is skipped', async () => {
  const body = `--B\r\n${disposition}\r\n\r\n${'x'.repeat(1000)}\r\n--B\r\n\r\n\r\n--B--`
  let count = 0
  for await (const _ of parseMultipart(inPieces(Buffer.from(body), 10), 'B')) count += 1
  assert.equal(count, 2)
})

test('a body without boundaries is rejected', async () => {
  const bodies = [
    '',
    '--',
    '--B',
    '--B\r\n',
    `--B\r\n${disposition}\r\n`,
    '--B\r\n\r\nabc\r\n--',
    'x--B--',
  ]
  for (const body of bodies) {
    await assert.rejects(parse(body), { reason: 'bad_multipart' }, JSON.stringify(body))
  }
  assert.deepEqual(await parse('--B--'), [])
})

test('too many parts are rejected', async () => {
  const body = '--B\r\n\r\n\r\n'.repeat(100_001)
  await assert.rejects(parse(body, 'B', 1_000_000), /more than 100000 parts/)
})

const headers: [string, string | undefined, string | undefined][] = [
  ['form-data; name="file"; filename="/a/b c.txt"', 'file', '/a/b c.txt'],
  ['form-data; name=file; filename=plain', 'file', 'plain'],
  [String.raw`form-data; name="file"; filename="a\"b\\c"`, 'file', String.raw`a"b\c`],
  [String.raw`form-data; name="file"; filename="C:\dir\f"`, 'file', String.raw`C:\dir\f`],
  ['form-data; name="file"; filename="ü/日"', 'file', 'ü/日'],
  [`form-data; name="file"; filename="x"; filename*=UTF-8''%e2%82%ac`, 'file', '€'],
  [`form-data; name="file"; filename="x"; filename*=UTF-8''%ff`, 'file', 'x'],
  [`form-data; name="file"; filename="x"; filename*=latin1''y`, 'file', 'x'],
  ['form-data; name="file"; name="other"', 'file', undefined],
  ['FORM-DATA;NAME="file"', 'file', undefined],
  ['form-data; name="a; filename=b"', 'a; filename=b', undefined],
  ['form-data', undefined, undefined],
  ['attachment; name="file"', undefined, undefined],
  ['', undefined, undefined],
]

for (const [value, name, filename] of headers) {
  test(`parses the part header '${value}'`, () => {
    assert.deepEqual(parsePartHeaders(`\r\nContent-Disposition: ${value}`), { name, filename })
  })
}

test('long runs of quotes and backslashes parse in linear time', async () => {
  const cpuMs = await measureCpuMs(() => {
    parsePartHeaders(`\r\nContent-Disposition: form-data; name="${'\\'.repeat(60_000)}`)
    parsePartHeaders(`\r\nContent-Disposition: form-data${';a='.repeat(20_000)}`)
  })
  assert.ok(cpuMs < 2000, `${cpuMs} ms`)
})
