import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyPrefix, envdAccessToken, hashSecret, looksLike, newSecret } from './key.ts'

test('a new key has its form, its hash and a mask that shows little of it', () => {
  const { value, hash, mask } = newSecret(apiKeyPrefix)
  assert.match(value, /^e2b_[0-9a-f]{40}$/)
  assert.equal(hash, hashSecret(value))
  assert.deepEqual(mask, {
    prefix: 'e2b_',
    valueLength: 40,
    maskedValuePrefix: value.slice(4, 6),
    maskedValueSuffix: value.slice(-4),
  })
  assert.ok(looksLike(apiKeyPrefix, value))
})

for (const bad of [
  '',
  'e2b_',
  `e2b_${'g'.repeat(40)}`,
  `sk_e2b_${'0'.repeat(40)}`,
  `e2b_${'0'.repeat(41)}`,
]) {
  test(`${bad.slice(0, 12)} does not look like an API key`, () => {
    assert.equal(looksLike(apiKeyPrefix, bad), false)
  })
}

test('the token of a sandbox depends on the seed and on the sandbox, and on nothing else', () => {
  const token = envdAccessToken('seed', 'i1')
  assert.match(token, /^[0-9a-f]{64}$/)
  assert.equal(envdAccessToken('seed', 'i1'), token)
  assert.notEqual(envdAccessToken('seed', 'i2'), token)
  assert.notEqual(envdAccessToken('other', 'i1'), token)
})
