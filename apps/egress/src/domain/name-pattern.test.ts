import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesName } from './name-pattern.ts'

for (const [name, pattern, expected] of [
  ['example.com', 'example.com', true],
  ['www.example.com', 'example.com', false],
  ['www.example.com', '*.example.com', true],
  ['a.b.c.example.com', '*.example.com', true],
  ['example.com', '*.example.com', false],
  ['.example.com', '*.example.com', false],
  ['example.com', '*.com', true],
  ['example.com.evil.net', '*.example.com', false],
  ['example.com', '*', false],
  ['*', '*', true],
  ['example.com', '', false],
  ['example.com', '*.', false],
] as const) {
  test(`${name} ${expected ? 'matches' : 'does not match'} ${pattern}`, () => {
    assert.equal(matchesName(name, [pattern]), expected)
  })
}

test('a name that merely ends with an allowed name does not match', () => {
  assert.equal(matchesName('notexample.com', ['example.com', '*.example.com']), false)
})

test('pattern characters have no regular expression meaning', () => {
  assert.equal(matchesName('examplexcom', ['example.com', '.*', 'example*', '*']), false)
})

test('one matching pattern is enough, and an empty list matches nothing', () => {
  assert.equal(matchesName('b.org', ['a.org', 'b.org', '*.c.org']), true)
  assert.equal(matchesName('b.org', []), false)
})
