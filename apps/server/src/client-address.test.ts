import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf, isLoopback } from './client-address.ts'

const clients: [string, string][] = [
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['127.0.0.1', '127.0.0.1'],
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['::1', '::1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::6', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
]

for (const [address, client] of clients) {
  test(`a connection from ${address} is of the client ${client}`, () => {
    assert.equal(clientOf(address), client)
  })
}

test('loopback is distinguished from other addresses', () => {
  for (const address of ['127.0.0.1', '127.9.8.7', '::1', '::ffff:127.0.0.1']) {
    assert.equal(isLoopback(clientOf(address)), true, address)
  }
  for (const address of ['128.0.0.1', '1.127.0.0', '::2', '2001:db8::1', '']) {
    assert.equal(isLoopback(clientOf(address)), false, address)
  }
})
