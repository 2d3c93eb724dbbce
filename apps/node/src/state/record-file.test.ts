import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { z } from 'zod'
import { decodeRecord, encodeRecord, readRecord } from './record-file.ts'

const Current = z.object({ name: z.string(), sizeMb: z.number(), note: z.string().exactOptional() })
const first = { schema: Current, upgrades: [] }
const record = { name: 'a', sizeMb: 3 }
const text = encodeRecord(record, first)

/** Third version of the format: the first stored sizes in bytes, the second had no unit in the field name. */
const third = {
  schema: Current,
  upgrades: [
    ({ bytes, ...rest }: Readonly<Record<string, unknown>>) => ({ ...rest, size: Number(bytes) }),
    ({ size, ...rest }: Readonly<Record<string, unknown>>) => ({
      ...rest,
      sizeMb: Number(size) / 1024 ** 2,
    }),
  ],
}

test('a record is read as it was written', () => {
  assert.deepEqual(decodeRecord(text, first), { state: 'read', record })
})

test('a record of the first releases, which has neither version nor checksum, is read', () => {
  assert.deepEqual(decodeRecord(JSON.stringify(record), first), { state: 'read', record })
})

test('a record of an older version is upgraded step by step', () => {
  const oldest = JSON.stringify({ name: 'a', bytes: 3 * 1024 ** 2 })
  assert.deepEqual(decodeRecord(oldest, third), { state: 'read', record })
  const second = encodeRecord(
    { name: 'a', size: 3 * 1024 ** 2 },
    { schema: z.object({ name: z.string(), size: z.number() }), upgrades: [(one) => one] },
  )
  assert.deepEqual(decodeRecord(second, third), { state: 'read', record })
})

const damaged = {
  'a newer version': encodeRecord(record, third),
  'a missing field': '{"name":"a"}',
  'a wrong type': '{"name":"a","sizeMb":"3"}',
  'an invalid version': '{"version":"one","name":"a","sizeMb":3}',
  'a version without a checksum': '{"version":1,"name":"a","sizeMb":3}',
  truncation: text.slice(0, -5),
  'no content': '',
  null: 'null',
  'a list': '[]',
}
for (const [what, content] of Object.entries(damaged)) {
  test(`a record with ${what} is unreadable, not absent`, () => {
    const reading = decodeRecord(content, first)
    assert.equal(reading.state, 'unreadable')
    assert.match(reading.reason, /\w/)
    assert.equal(reading.text, content)
  })
}

test('a record with any one bit flipped is unreadable or says the same', () => {
  const bytes = Buffer.from(text)
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    const reading = decodeRecord(flipped.toString('utf8'), first)
    if (reading.state === 'read') assert.deepEqual(reading.record, record, `bit ${bit}`)
  }
})

test('the reason never shows a value of the record', () => {
  const reading = decodeRecord('{"name":"secret","sizeMb":"hidden"}', first)
  assert.equal(reading.state, 'unreadable')
  assert.doesNotMatch(reading.reason, /secret|hidden/)
  assert.match(reading.reason, /sizeMb/)
})

test('a file that does not exist is absent, and one that is a folder is unreadable', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-record-'))
  assert.deepEqual(await readRecord(join(folder.path, 'none.json'), first), { state: 'absent' })
  await mkdir(join(folder.path, 'folder.json'))
  assert.equal((await readRecord(join(folder.path, 'folder.json'), first)).state, 'unreadable')
  await writeFile(join(folder.path, 'some.json'), text)
  assert.deepEqual(await readRecord(join(folder.path, 'some.json'), first), {
    state: 'read',
    record,
  })
})
