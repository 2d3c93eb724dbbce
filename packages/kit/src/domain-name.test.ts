import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isBroadPattern, isDomainName, isDomainPattern, normalizeName } from './domain-name.ts'

const label = 'a'.repeat(63)
/** 253 characters. */
const longest = [label, label, label, 'b'.repeat(61)].join('.')

const names = [
  'example.com',
  'Example.COM',
  'example.com.',
  'a.b',
  'x--y.example',
  'xn--bcher-kva.example',
  '_dmarc.example.com',
  '1.2.3.4.example',
  '8.8.8.8a',
  `${label}.com`,
  longest,
  `${longest}.`,
]

for (const name of names) {
  test(`${name} is a valid name`, () => {
    assert.deepEqual([isDomainName(name), isDomainPattern(name)], [true, true])
  })
}

for (const text of [
  '',
  '.',
  'localhost',
  'localhost.',
  'example..com',
  '.example.com',
  'example.com..',
  '-a.example',
  'a-.example',
  'example.-com',
  `a${label}.com`,
  `a${longest}`,
  'bücher.example',
  // The Kelvin sign: its lower case is a plain k.
  '\u212A.example',
  'a b.example',
  'example.com\n',
  'example.com:80',
  'http://example.com',
  'example.com/24',
  '1.2.3',
  '1.2.3.4',
  '1.2.3.4/40',
  '1.2.3.256',
  '1.0x7f',
  '*',
  '*.',
  '*.*',
  '*.com',
  '*.*.example.com',
  'a.*.example.com',
  '*a.example.com',
  '**.example.com',
  '*.1.2',
  `*.${longest}`,
]) {
  test(`${JSON.stringify(text)} is neither a valid name nor a valid pattern`, () => {
    assert.deepEqual([isDomainName(text), isDomainPattern(text)], [false, false])
  })
}

test('a wildcard is a pattern but not a name', () => {
  assert.deepEqual(['*.example.com', '*.A.b.'].map(isDomainPattern), [true, true])
  assert.equal(isDomainName('*.example.com'), false)
})

test('a name is normalized to lower case without a trailing dot', () => {
  assert.deepEqual(['Example.COM.', '*.A.b', 'a.b'].map(normalizeName), [
    'example.com',
    '*.a.b',
    'a.b',
  ])
})

test('a wildcard below a single label is a broad pattern only', () => {
  assert.deepEqual([isBroadPattern('*.com'), isDomainPattern('*.com')], [true, false])
  for (const text of ['a.b', '*.a.b', '*.a.b.']) assert.ok(isBroadPattern(text), text)
  for (const text of ['*', '*.', 'com', '*.*.com', '*.4', 'a.*.b']) {
    assert.ok(!isBroadPattern(text), text)
  }
})
