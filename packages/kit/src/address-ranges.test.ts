import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { contains, formatRange, isEverything, toNumber, toRanges } from './address-ranges.ts'

const written = (entries: readonly string[]) => toRanges(entries).map(formatRange)

test('addresses and CIDR ranges become sorted ranges', () => {
  assert.deepEqual(written(['9.9.9.9', '1.2.3.4/24', '255.255.255.255/32']), [
    '1.2.3.0-1.2.3.255',
    '9.9.9.9',
    '255.255.255.255',
  ])
})

test('overlapping, adjacent and duplicate ranges are merged', () => {
  assert.deepEqual(written(['8.0.1.0/24', '8.0.0.0/24', '8.0.0.7', '8.0.0.0/25', '9.0.0.0/8']), [
    '8.0.0.0-8.0.1.255',
    '9.0.0.0-9.255.255.255',
  ])
})

test('isEverything is true only for the whole address space', () => {
  assert.equal(isEverything(toRanges(['0.0.0.0/0'])), true)
  assert.equal(isEverything(toRanges(['128.0.0.0/1', '0.0.0.0/1', '3.3.3.3'])), true)
  assert.equal(isEverything(toRanges(['0.0.0.0/1'])), false)
  assert.equal(isEverything(toRanges([])), false)
})

for (const entry of [
  '',
  'example.com',
  '1.2.3',
  '1.2.3.4/33',
  '1.2.3.4/',
  '1.2.3.4/8/8',
  '1.2.3.4/+8',
  '01.2.3.256',
  '0x1.2.3.4',
  '::1',
  '1.2.3.4 } accept; add rule x',
]) {
  test(`${JSON.stringify(entry)} is refused`, () => {
    assert.throws(() => toRanges([entry]), { reason: 'bad_network_rule' })
  })
}

test('the first and the last address are valid', () => {
  assert.deepEqual(toRanges(['0.0.0.0/0']), [{ first: 0, last: 2 ** 32 - 1 }])
  assert.equal(toNumber('255.255.255.255'), 2 ** 32 - 1)
  assert.equal(contains(toRanges(['255.255.255.255', '0.0.0.0']), 2 ** 32 - 1), true)
  assert.equal(contains([], 0), false)
})

for (const text of [
  '',
  '1.2.3',
  '01.2.3.4',
  '0x1.2.3.4',
  '1.2.3.256',
  '::ffff:1.2.3.4',
  '1.2.3.4 ',
]) {
  test(`${JSON.stringify(text)} is not an IPv4 address`, () =>
    assert.equal(toNumber(text), undefined))
}

test('binary search in 10,000 ranges agrees with a linear search', () => {
  // Pseudo-random, and the same in each run.
  const bytesOf = (seed: number) => createHash('sha256').update(String(seed)).digest()
  const entries = Array.from({ length: 10_000 }, (_, at) => {
    const [a, b, c, d, bits = 0] = bytesOf(at)
    return `${a}.${b}.${c}.${d}/${12 + (bits % 21)}`
  })
  const ranges = toRanges(entries)
  const edges = ranges
    .slice(0, 500)
    .flatMap(({ first, last }) => [first - 1, first, last, last + 1])
  const others = Array.from({ length: 500 }, (_, at) => bytesOf(-1 - at).readUInt32BE())
  for (const address of [...edges, ...others]) {
    const expected = ranges.some(({ first, last }) => first <= address && address <= last)
    assert.equal(contains(ranges, address), expected)
  }
})
