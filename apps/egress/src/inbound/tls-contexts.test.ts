import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthority } from '../domain/certificates/authority.ts'
import { createTlsContexts } from './tls-contexts.ts'

const authority = createAuthority()
const dayMs = 86_400_000

test('a certificate is issued once for each name and CA', () => {
  const contexts = createTlsContexts()
  const first = contexts(authority, 'a.com')
  assert.equal(contexts({ ...authority }, 'a.com'), first)
  assert.notEqual(contexts(authority, 'b.com'), first)
  assert.notEqual(contexts(createAuthority(), 'a.com'), first)
})

test('a certificate is renewed after some days', () => {
  let now = Date.now()
  const contexts = createTlsContexts({}, () => new Date(now))
  const first = contexts(authority, 'a.com')
  now += 6 * dayMs
  assert.equal(contexts(authority, 'a.com'), first)
  now += dayMs
  assert.notEqual(contexts(authority, 'a.com'), first)
})

test('only the last certificates of one sandbox stay cached', () => {
  const contexts = createTlsContexts({ limitPerAuthority: 3 })
  const first = contexts(authority, 'first.com')
  const second = contexts(authority, 'second.com')
  for (let number = 0; number < 10; number += 1) {
    contexts(authority, `${number}.example.com`)
    assert.equal(contexts(authority, 'first.com'), first)
  }
  assert.notEqual(contexts(authority, 'second.com'), second)
})

test('one sandbox cannot evict the certificates of others', () => {
  const contexts = createTlsContexts({ limit: 5, limitPerAuthority: 3 })
  const other = createAuthority()
  const first = contexts(other, 'first.com')
  for (let number = 0; number < 10; number += 1) contexts(authority, `${number}.example.com`)
  assert.equal(contexts(other, 'first.com'), first)
})

test('the cache has a limit for all sandboxes together', () => {
  const contexts = createTlsContexts({ limit: 2, limitPerAuthority: 2 })
  const [first, second] = [contexts(authority, 'a.com'), contexts(authority, 'b.com')]
  contexts(createAuthority(), 'c.com')
  assert.equal(contexts(authority, 'b.com'), second)
  assert.notEqual(contexts(authority, 'a.com'), first)
})
