import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRange, isEverything, toRanges } from './network-rules.ts'

const written = (entries: readonly string[]) => toRanges(entries).map(formatRange)

test('addresses and ranges become ranges in order', () => {
  assert.deepEqual(written(['9.9.9.9', '1.2.3.4/24', '255.255.255.255/32']), [
    '1.2.3.0-1.2.3.255',
    '9.9.9.9',
    '255.255.255.255',
  ])
})

test('ranges that overlap, touch or repeat become one', () => {
  assert.deepEqual(written(['8.0.1.0/24', '8.0.0.0/24', '8.0.0.7', '8.0.0.0/25', '9.0.0.0/8']), [
    '8.0.0.0-8.0.1.255',
    '9.0.0.0-9.255.255.255',
  ])
})

test('everything is told from nearly everything', () => {
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
