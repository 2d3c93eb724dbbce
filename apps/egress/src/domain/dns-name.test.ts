import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toDnsName } from './dns-name.ts'

const longest = `${`${'a'.repeat(63)}.`.repeat(3)}${'b'.repeat(61)}`

for (const [text, name] of [
  ['example.com', 'example.com'],
  ['WWW.Example.COM', 'www.example.com'],
  ['example.com.', 'example.com'],
  ['_acme-challenge.a--b.x1', '_acme-challenge.a--b.x1'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['1.2.3.4.in-addr.arpa', '1.2.3.4.in-addr.arpa'],
  ['0x.example', '0x.example'],
  [longest, longest],
  [`${longest}.`, longest],
] as const) {
  test(`${text.slice(0, 40)} is a valid name`, () => assert.equal(toDnsName(text), name))
}

for (const text of [
  '',
  '.',
  '..',
  'example.com..',
  '.example.com',
  'a..b',
  '-a.com',
  'a-.com',
  'a b.com',
  'a.com\n',
  'a.com\0.b',
  'localhost', // a single label; rules cannot name it
  '*.example.com',
  'user@example.com',
  'b\u{fc}cher.example',
  '\u{212a}.com', // the Kelvin sign becomes the letter k in lower case
  `${'a'.repeat(64)}.com`,
  `${longest}b`,
]) {
  test(`${JSON.stringify(text.slice(0, 70))} is not a valid name`, () => {
    assert.equal(toDnsName(text), undefined)
  })
}

for (const text of ['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0X7F.0x1', '[::1]', '::1']) {
  test(`a name that resolvers read as an address is rejected: ${text}`, () => {
    assert.equal(toDnsName(text), undefined)
  })
}
