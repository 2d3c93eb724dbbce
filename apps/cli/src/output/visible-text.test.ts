import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainOutput, visibleJson, visibleName, visibleText } from './visible-text.ts'

test('escape sequences, line breaks and direction overrides of names become visible', () => {
  assert.equal(
    visibleName('a\x1b[2J\nb\tc\u009b1m\u202ed\x7f'),
    String.raw`a\x1b[2J\x0ab\x09c\x9b1m\u202ed\x7f`,
  )
  assert.equal(visibleName('Grüße 日本 😀'), 'Grüße 日本 😀')
  assert.equal(visibleName('\ud800x'), String.raw`\ud800x`)
})

test('texts keep their lines', () => {
  assert.equal(
    visibleText('a\r\nb\tc\rd\x1b]0;title\x07'),
    'a\nb\tc' + String.raw`\x0dd\x1b]0;title\x07`,
  )
})

test('output loses its colours and its carriage returns', () => {
  assert.equal(plainOutput('\x1b[1;32mok\x1b[0m 1 %\r2 %\r\n'), 'ok 1 %\n2 %\r\n')
  assert.equal(plainOutput('\x1b[2J'), '\x1b[2J')
})

test('JSON keeps its meaning and has no control characters', () => {
  const value = { name: 'a\x1b\u009b\u202e\u2028\x7f', list: ['😀\n'] }
  const shown = visibleJson(JSON.stringify(value, null, 2))
  assert.deepEqual(JSON.parse(shown), value)
  assert.equal(visibleText(shown), shown)
})
