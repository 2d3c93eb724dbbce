import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../testing/random.ts'
import { contains, toNumber, toRanges } from './address-ranges.ts'

test('ranges that overlap, touch or repeat become one, in order', () => {
  const first = toNumber('8.0.0.0') ?? 0
  assert.deepEqual(toRanges(['9.0.0.7', '8.0.1.0/24', '8.0.0.99/24', '8.0.0.7', '9.0.0.7']), [
    { first, last: first + 511 },
    { first: first + 2 ** 24 + 7, last: first + 2 ** 24 + 7 },
  ])
})

test('both ends of the address space can be had', () => {
  assert.deepEqual(toRanges(['0.0.0.0/0']), [{ first: 0, last: 2 ** 32 - 1 }])
  assert.equal(toNumber('255.255.255.255'), 2 ** 32 - 1)
  assert.equal(contains(toRanges(['255.255.255.255', '0.0.0.0']), 2 ** 32 - 1), true)
  assert.equal(contains([], 0), false)
})

for (const entry of [
  '',
  'example.com',
  '1.2.3',
  '1.2.3.4/33',
  '1.2.3.4/',
  '1.2.3.4/8/8',
  '::1/8',
]) {
  test(`${JSON.stringify(entry)} is refused`, () => {
    assert.throws(() => toRanges([entry]), { reason: 'bad_network_rule' })
  })
}

for (const text of [
  '',
  '1.2.3',
  '01.2.3.4',
  '0x1.2.3.4',
  '1.2.3.256',
  '::ffff:1.2.3.4',
  '1.2.3.4 ',
]) {
  test(`${JSON.stringify(text)} is no address`, () => assert.equal(toNumber(text), undefined))
}

test('a search in 10,000 ranges finds what looking at each of them finds', () => {
  const random = createRandom(1)
  const entries = Array.from({ length: 10_000 }, () => {
    return `${[...random.bytes(4)].join('.')}/${12 + random.below(21)}`
  })
  const ranges = toRanges(entries)
  const edges = ranges
    .slice(0, 500)
    .flatMap(({ first, last }) => [first - 1, first, last, last + 1])
  const others = Array.from({ length: 500 }, () => random.bytes(4).readUInt32BE())
  for (const address of [...edges, ...others]) {
    const expected = ranges.some(({ first, last }) => first <= address && address <= last)
    assert.equal(contains(ranges, address), expected)
  }
})
