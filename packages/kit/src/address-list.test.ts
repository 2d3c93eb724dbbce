import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddressList } from './address-list.ts'

test('a list has its addresses and networks, and nothing else', () => {
  const list = parseAddressList('10.1.0.0/16, 192.0.2.7,2001:db8::/32,::1')
  assert.ok('has' in list)
  const inside = [
    '10.1.0.0',
    '10.1.255.255',
    '192.0.2.7',
    '2001:db8:9::1',
    '::1',
    '::ffff:10.1.2.3',
  ]
  const outside = ['10.2.0.0', '192.0.2.8', '2001:db9::', '::2', '', 'unknown', 'localhost']
  assert.deepEqual(
    [inside.map(list.has), outside.map(list.has)],
    [inside.map(() => true), outside.map(() => false)],
  )
})

test('an empty list has no address', () => {
  const list = parseAddressList(' ')
  assert.ok('has' in list && !list.has('127.0.0.1'))
})

for (const invalid of [
  '10.0.0.0/33',
  '::/129',
  'proxy.test',
  '10.0.0.0/8/8',
  '10.0.0.0/',
  '1.2.3',
]) {
  test(`${invalid} is no entry of a list`, () => {
    assert.deepEqual(parseAddressList(`10.0.0.1,${invalid}`), { invalid })
  })
}
