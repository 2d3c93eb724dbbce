import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthority } from '../domain/authority.ts'
import { createLeafContexts } from './leaf-contexts.ts'

const authority = createAuthority()
const dayMs = 86_400_000

test('a certificate is made once for each name and authority', () => {
  const contexts = createLeafContexts()
  const first = contexts(authority, 'a.com')
  assert.equal(contexts({ ...authority }, 'a.com'), first)
  assert.notEqual(contexts(authority, 'b.com'), first)
  assert.notEqual(contexts(createAuthority(), 'a.com'), first)
})

test('a certificate is made anew after some days', () => {
  let now = Date.now()
  const contexts = createLeafContexts({}, () => new Date(now))
  const first = contexts(authority, 'a.com')
  now += 6 * dayMs
  assert.equal(contexts(authority, 'a.com'), first)
  now += dayMs
  assert.notEqual(contexts(authority, 'a.com'), first)
})

test('a sandbox that asks for ever more names has only the last ones kept', () => {
  const contexts = createLeafContexts({ limitOfEach: 3 })
  const first = contexts(authority, 'first.com')
  const second = contexts(authority, 'second.com')
  for (let number = 0; number < 10; number += 1) {
    contexts(authority, `${number}.example.com`)
    assert.equal(contexts(authority, 'first.com'), first)
  }
  assert.notEqual(contexts(authority, 'second.com'), second)
})

test('a sandbox that asks for ever more names does not take the place of others', () => {
  const contexts = createLeafContexts({ limit: 5, limitOfEach: 3 })
  const other = createAuthority()
  const first = contexts(other, 'first.com')
  for (let number = 0; number < 10; number += 1) contexts(authority, `${number}.example.com`)
  assert.equal(contexts(other, 'first.com'), first)
})

test('no more are kept than of all together', () => {
  const contexts = createLeafContexts({ limit: 2, limitOfEach: 2 })
  const [first, second] = [contexts(authority, 'a.com'), contexts(authority, 'b.com')]
  contexts(createAuthority(), 'c.com')
  assert.equal(contexts(authority, 'b.com'), second)
  assert.notEqual(contexts(authority, 'a.com'), first)
})
