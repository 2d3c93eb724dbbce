import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseVariables } from './variables.ts'

test('variables are separated by white space, and values may have any other character', () => {
  assert.deepEqual(parseVariables(''), {})
  assert.deepEqual(parseVariables(' no_proxy=a,b=c\n EMPTY= '), { no_proxy: 'a,b=c', EMPTY: '' })
})

test('text that is not a variable is refused', () => {
  for (const text of ['http://proxy.example', '=value', '1A=b', 'A=b c']) {
    assert.equal(parseVariables(text), undefined, text)
  }
})
