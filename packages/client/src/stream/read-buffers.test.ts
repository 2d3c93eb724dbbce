import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createReadBuffers } from './read-buffers.ts'

/** Simulates the reads of a connection, each limited by the buffer and by the next of `sizes`. */
function readAll(bytes: Buffer, sizes: readonly number[], memory = createReadBuffers()): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const readBuffer = memory.readBuffer()
    assert.ok(readBuffer.length > 0)
    const count = bytes.copy(readBuffer, 0, at, at + (sizes[pieces.length % sizes.length] ?? 0))
    pieces.push(memory.commit(count))
    at += count
  }
  return pieces
}

const reads: [string, number[]][] = [
  ['little', [1, 20, 300]],
  ['much', [1_000_000]],
  ['now little, now much', [100, 16_384, 70_000, 1, 500_000, 40_000, 16_383]],
]

for (const [name, sizes] of reads) {
  test(`read bytes stay unchanged, with ${name} at a time`, () => {
    const bytes = randomBytes(sizes.length === 3 ? 50_000 : 3_000_000)
    assert.ok(Buffer.concat(readAll(bytes, sizes)).equals(bytes))
  })
}

test('connections do not disturb each other', () => {
  const [one, other] = [createReadBuffers(), createReadBuffers()]
  one.readBuffer().write('abc')
  const kept = one.commit(3)
  other.readBuffer().write('xyz')
  other.commit(3)
  assert.equal(kept.toString(), 'abc')
})

test('a small read does not keep a large block alive', () => {
  const pieces = readAll(randomBytes(400_000), [100_000, 50])
  const small = pieces.filter(({ length }) => length <= 50)
  assert.ok(small.length > 0)
  assert.ok(small.every(({ buffer }) => buffer.byteLength < 100_000))
})

test('new bytes do not overwrite bytes that are still needed', () => {
  let isFree = true
  const memory = createReadBuffers(() => isFree)
  readAll(randomBytes(100_000), [100_000], memory)
  const bytes = randomBytes(300_000)
  const [first, , last] = readAll(bytes, [100_000], memory)
  isFree = false
  const later = readAll(bytes, [100_000], memory)
  assert.ok(last && bytes.subarray(200_000).equals(last))
  assert.ok(Buffer.concat(later).equals(bytes))
  assert.ok(first && !bytes.subarray(0, 100_000).equals(first), 'the memory is used again')
})

test('an allocated buffer stays unchanged while it is needed or incomplete', () => {
  let isFree = false
  const memory = createReadBuffers(() => isFree)
  const parts = [1, 2, 3].map((value) => memory.allocate(10).fill(value))
  isFree = true
  memory.readBuffer().fill(0)
  memory.commit(1)
  const [last] = [parts[2], memory.allocate(10).fill(4), memory.allocate(8).fill(5)]
  assert.deepEqual(last, Buffer.alloc(10, 3))
  assert.deepEqual(parts[1], Buffer.alloc(10, 4))
})
