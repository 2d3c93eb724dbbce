import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMetadataHeaders } from './metadata-headers.ts'

test('keys are lower-cased, the first of each wins, and other headers are ignored', () => {
  const raw = [
    'X-Metadata-Author',
    'me',
    'Host',
    'x',
    'x-metadata-author',
    'you',
    'X-METADATA-B',
    '',
  ]
  assert.deepEqual(parseMetadataHeaders(raw), { author: 'me', b: '' })
  assert.deepEqual(parseMetadataHeaders([]), {})
})

const bad: [string, string[]][] = [
  ['a value beyond ASCII', ['x-metadata-a', 'é']],
  ['a value with a control character', ['x-metadata-a', 'a\tb']],
  ['no key', ['x-metadata-', 'v']],
  ['a key of 247 bytes', [`x-metadata-${'k'.repeat(247)}`, 'v']],
  ['4,097 bytes', ['x-metadata-k', 'v'.repeat(4097 - 'user.e2b.k'.length)]],
  ['4,097 bytes in all', ['x-metadata-k', 'v'.repeat(4000), 'x-metadata-l', 'v'.repeat(77)]],
]

for (const [what, raw] of bad) {
  test(`${what} is rejected`, () =>
    assert.throws(() => parseMetadataHeaders(raw), { kind: 'invalid' }))
}

test('4,096 bytes and a key of 246 bytes are accepted', () => {
  const value = 'v'.repeat(4096 - 'user.e2b.k'.length)
  assert.deepEqual(parseMetadataHeaders(['x-metadata-k', value]), { k: value })
  const key = 'k'.repeat(246)
  assert.deepEqual(parseMetadataHeaders([`x-metadata-${key}`, 'v']), { [key]: 'v' })
})
