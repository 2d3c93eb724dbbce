import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replaceHostile } from './hostile-characters.ts'

const mark = (text: string) =>
  replaceHostile(text, (char) => `<${char.charCodeAt(0).toString(16)}>`)

test('control characters, direction overrides and invisible characters are replaced', () => {
  assert.equal(mark('a\0\n\t\x1b[2J\x7f\x9b'), 'a<0><a><9><1b>[2J<7f><9b>')
  assert.equal(
    mark('\xad\u061c\u200b\u200f\u2028\u202e\u2060\u2069\ufeff'),
    '<ad><61c><200b><200f><2028><202e><2060><2069><feff>',
  )
  assert.equal(mark('\ud800x'), '<d800>x')
})

test('text of any language stays as it is', () => {
  assert.equal(mark('Grüße 日本 😀 שלום'), 'Grüße 日本 😀 שלום')
})
