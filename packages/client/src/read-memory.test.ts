import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createReadMemory } from './read-memory.ts'

/** What a connection would read, as much at a time as there is room for, but no more than the next of `sizes`. */
function readAll(bytes: Buffer, sizes: readonly number[], memory = createReadMemory()): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const room = memory.room()
    assert.ok(room.length > 0)
    const count = bytes.copy(room, 0, at, at + (sizes[pieces.length % sizes.length] ?? 0))
    pieces.push(memory.take(count))
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
  test(`what is kept stays as it was read, with ${name} at a time`, () => {
    const bytes = randomBytes(sizes.length === 3 ? 50_000 : 3_000_000)
    assert.ok(Buffer.concat(readAll(bytes, sizes)).equals(bytes))
  })
}

test('connections do not disturb each other', () => {
  const [one, other] = [createReadMemory(), createReadMemory()]
  one.room().write('abc')
  const kept = one.take(3)
  other.room().write('xyz')
  other.take(3)
  assert.equal(kept.toString(), 'abc')
})

test('a little that is kept holds no large block', () => {
  const pieces = readAll(randomBytes(400_000), [100_000, 50])
  const small = pieces.filter(({ length }) => length <= 50)
  assert.ok(small.length > 0)
  assert.ok(small.every(({ buffer }) => buffer.byteLength < 100_000))
})

test('what is read while somebody needs the last lies elsewhere', () => {
  let isFree = true
  const memory = createReadMemory(() => isFree)
  readAll(randomBytes(100_000), [100_000], memory)
  const bytes = randomBytes(300_000)
  const [first, , last] = readAll(bytes, [100_000], memory)
  isFree = false
  const later = readAll(bytes, [100_000], memory)
  assert.ok(last && bytes.subarray(200_000).equals(last))
  assert.ok(Buffer.concat(later).equals(bytes))
  assert.ok(first && !bytes.subarray(0, 100_000).equals(first), 'the memory is used again')
})

test('what is put together stays while it is needed, and while it is filled', () => {
  let isFree = false
  const memory = createReadMemory(() => isFree)
  const parts = [1, 2, 3].map((value) => memory.apart(10).fill(value))
  isFree = true
  memory.room().fill(0)
  memory.take(1)
  const [last] = [parts[2], memory.apart(10).fill(4), memory.apart(8).fill(5)]
  assert.deepEqual(last, Buffer.alloc(10, 3))
  assert.deepEqual(parts[1], Buffer.alloc(10, 4))
})
