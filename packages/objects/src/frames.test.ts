import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { frameBytes, newContentKey, openFrames, sealFrames } from './frames.ts'

const key = newContentKey()
const stored = frameBytes + 16

async function* inChunks(content: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const seal = (content: Buffer, chunk = 1_000_003) =>
  collect(sealFrames(inChunks(content, chunk), key, 'a'))
const open = (sealed: Buffer, identity = 'a', secret = key) =>
  collect(openFrames(inChunks(sealed, 777_777), secret, identity))

for (const size of [0, 1, frameBytes - 1, frameBytes, frameBytes + 1, 2 * frameBytes + 5]) {
  test(`${size} bytes open as they were sealed`, async () => {
    const content = randomBytes(size)
    const sealed = await seal(content)
    assert.ok(content.equals(await open(sealed)))
    assert.ok(size < 32 || !sealed.includes(content.subarray(0, 32)))
  })
}

test('frames that are cut off, swapped, repeated, changed or foreign do not open', async () => {
  const sealed = await seal(randomBytes(2 * frameBytes + 5))
  const [first, second, last] = [
    sealed.subarray(0, stored),
    sealed.subarray(stored, 2 * stored),
    sealed.subarray(2 * stored),
  ]
  const changed = Buffer.from(sealed)
  changed.writeUInt8(changed.readUInt8(stored + 9) ^ 1, stored + 9)
  const attacks: Record<string, Buffer> = {
    'cut at a frame': Buffer.concat([first, second]),
    'cut in a frame': sealed.subarray(0, stored + 100),
    'cut in a tag': sealed.subarray(0, -1),
    swapped: Buffer.concat([second, first, last]),
    repeated: Buffer.concat([first, first, last]),
    'without the first': Buffer.concat([second, last]),
    changed,
    empty: Buffer.alloc(0),
    longer: Buffer.concat([sealed, Buffer.alloc(1)]),
  }
  for (const [name, content] of Object.entries(attacks)) {
    await assert.rejects(open(content), { reason: 'object_damaged' }, name)
  }
  await assert.rejects(open(sealed, 'b'), { reason: 'object_damaged' })
  await assert.rejects(open(sealed, 'a', newContentKey()), { reason: 'object_damaged' })
})
