import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAtLeast } from './version.ts'

for (const [version, least, expected] of [
  ['0.5.0', '0.5.0', true],
  ['0.5.7', '0.5.0', true],
  ['0.10.0', '0.9.9', true],
  ['1.0.0', '0.5.0', true],
  ['0.4.9', '0.5.0', false],
  ['0.5', '0.5.1', false],
  ['', '0.5.0', false],
] as const) {
  test(`${version || 'nothing'} is ${expected ? '' : 'not '}at least ${least}`, () => {
    assert.equal(isAtLeast(version, least), expected)
  })
}
