import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createEnvelopeReader } from './envelopes.ts'

const limitBytes = 100_000
const memory = { allocate: Buffer.alloc }

function envelope(data: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(flags)
  head.writeUInt32BE(data.length, 1)
  return Buffer.concat([head, data])
}

const sent = [0, 1, 40_000, 0, 5, 4, limitBytes, 6].map((size, at) => ({
  flags: at % 3,
  data: randomBytes(size),
}))
const bytes = Buffer.concat(sent.map(({ flags, data }) => envelope(data, flags)))

for (const size of [1, 2, 4, 5, 6, 7, 64, 4096, 65_536, bytes.length]) {
  test(`envelopes are found in pieces of ${size} bytes`, () => {
    const { read } = createEnvelopeReader(limitBytes, memory)
    const found = []
    for (let at = 0; at < bytes.length; at += size)
      found.push(...read(bytes.subarray(at, at + size)))
    assert.equal(found.length, sent.length)
    for (const [at, { flags, data }] of found.entries()) {
      assert.equal(flags, sent[at]?.flags)
      assert.ok(sent[at]?.data.equals(data))
    }
  })
}

test('an envelope that lies in one piece is not copied', () => {
  const piece = Buffer.concat([envelope(Buffer.from('one')), envelope(Buffer.from('two'))])
  const found = createEnvelopeReader(limitBytes, memory).read(piece)
  assert.ok(found.every(({ data }) => data.buffer === piece.buffer))
})

test('a split envelope stays valid after its pieces and the next envelope', () => {
  const { read } = createEnvelopeReader(limitBytes, memory)
  const piece = Buffer.concat([envelope(Buffer.from('first')), envelope(Buffer.from('other'))])
  const [first] = [...read(piece.subarray(0, 7)), ...read(piece.subarray(7, 12))]
  read(piece.subarray(12))
  piece.fill(0)
  assert.equal(first?.data.toString(), 'first')
})

for (const size of [1, 5, 1024]) {
  test(`an envelope beyond the limit is rejected by its header, in pieces of ${size}`, () => {
    const { read } = createEnvelopeReader(limitBytes, memory)
    const head = Buffer.from([0, 0xff, 0xff, 0xff, 0xff])
    const feed = () => {
      for (let at = 0; at < head.length; at += size) read(head.subarray(at, at + size))
    }
    assert.throws(feed, /Message too large: 4294967295 bytes, limit 100000/)
  })
}
