import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSubnet, toSlot } from './slot.ts'

test('slots take four addresses each, from the start of the subnet on', () => {
  const subnet = parseSubnet('10.213.0.0/16')
  assert.equal(subnet.slots, 16_384)
  const [first, last] = [toSlot(subnet, 'atx-', 0), toSlot(subnet, 'atx-', 16_383)]
  assert.deepEqual(
    [first.hostAddress, first.sandboxAddress, first.link],
    ['10.213.0.1', '10.213.0.2', 'atx-0'],
  )
  assert.deepEqual([last.hostAddress, last.sandboxAddress], ['10.213.255.253', '10.213.255.254'])
})

test('addresses in the upper half of the space are right too', () => {
  const slot = toSlot(parseSubnet('198.51.100.0/24'), 'atx-', 3)
  assert.equal(slot.sandboxAddress, '198.51.100.14')
})

for (const bad of ['10.213.0.1/16', '10.0.0.0/31']) {
  test(`${bad} is not a subnet`, () => {
    assert.throws(() => parseSubnet(bad), { reason: 'bad_subnet' })
  })
}
