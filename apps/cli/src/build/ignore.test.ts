import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readIgnore } from './ignore.ts'

const cases = [
  ['node_modules', 'node_modules/a/b', true],
  ['node_modules', 'sub/node_modules', false],
  ['**/node_modules', 'sub/node_modules/x', true],
  ['*.log', 'a.log', true],
  ['*.log', 'sub/a.log', false],
  ['/dist/', 'dist/x', true],
  ['# comment\n\n', 'comment', false],
  ['*\n!keep', 'keep/x', false],
  ['*\n!keep', 'other', true],
  ['a?c', 'abc', true],
  ['a[0-9]', 'a7', true],
  ['a.b', 'axb', false],
  ['**', 'any/thing', true],
] as const

for (const [patterns, path, isExcluded] of cases) {
  test(`${JSON.stringify(patterns)} ${isExcluded ? 'excludes' : 'keeps'} ${path}`, () => {
    assert.equal(readIgnore(patterns).excludes(path), isExcluded)
  })
}
