import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectPair, parseCount, parseDuration } from './arguments.ts'

for (const [text, seconds] of [
  ['90', 90],
  ['90s', 90],
  ['5m', 300],
  ['2h', 7200],
  ['0', 0],
] as const) {
  test(`${text} is ${seconds} seconds`, () => assert.equal(parseDuration(text), seconds))
}

for (const text of ['', '-1', '1.5', '5 m', '1d', 'soon']) {
  test(`"${text}" is not a duration`, () =>
    assert.throws(() => parseDuration(text), /number of seconds/))
}

for (const text of ['', '0', '-1', '1.5', '1e3', 'x']) {
  test(`"${text}" is not a count`, () => assert.throws(() => parseCount(text), /whole number/))
}

test('pairs are collected, with any value and a name that is not empty', () => {
  assert.deepEqual(collectPair('b==', collectPair('a=')), { a: '', b: '=' })
  for (const text of ['', 'a', '=a']) assert.throws(() => collectPair(text), /name=value/)
})
