import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMetadataQuery } from './metadata-query.ts'

/** Encodes pairs like a client, without the final encoding as a query value. */
function encode(pairs: Record<string, string>): string {
  const form = new URLSearchParams()
  for (const [key, value] of Object.entries(pairs)) {
    form.set(encodeURIComponent(key), encodeURIComponent(value))
  }
  return form.toString()
}

for (const pairs of [
  { k: 'a b' },
  { user: 'x', app: 'y' },
  { 'a=b': 'c&d' },
  { '+': '%20' },
  { ключ: 'значение' },
  { empty: '' },
]) {
  test(`${JSON.stringify(pairs)} survives the encoding of clients`, () => {
    assert.deepEqual(parseMetadataQuery(encode(pairs)), pairs)
  })
}

test('the filter as it is in the URL of a client', () => {
  const value = new URL('http://x/?metadata=k%3Da%252520b').searchParams.get('metadata')
  assert.deepEqual(parseMetadataQuery(value ?? ''), { k: 'a b' })
})

test('no filter, or an empty one, matches everything', () => {
  assert.equal(parseMetadataQuery(undefined), undefined)
  assert.equal(parseMetadataQuery(''), undefined)
})

for (const bad of ['k', 'a=b=c', 'a=b&', '%', 'a=%25zz', Array(65).fill('a=b').join('&')]) {
  test(`${bad.slice(0, 20)} is refused with advice`, () => {
    assert.throws(() => parseMetadataQuery(bad), /query\.metadata: .*key=value/)
  })
}
