import assert from 'node:assert/strict'
import type { NetworkInterfaceInfo } from 'node:os'
import { test } from 'node:test'
import { createHostAddresses } from './host-addresses.ts'

test('interfaces are listed at most once a second, and a new address is seen then', () => {
  let nowMs = 0
  let reads = 0
  const addresses = ['192.0.2.1']
  const read = () => {
    reads += 1
    return { eth0: addresses.map(link) }
  }
  const own = createHostAddresses(read, () => nowMs)
  for (nowMs = 0; nowMs < 1000; nowMs += 10) own()
  addresses.push('192.0.2.2')
  nowMs = 999
  assert.deepEqual([reads, own()], [1, new Set(['192.0.2.1'])])
  nowMs = 1000
  assert.deepEqual([own(), reads], [new Set(['192.0.2.1', '192.0.2.2']), 2])
})

test('the addresses of this host are found', () => {
  assert.ok(createHostAddresses()().has('127.0.0.1'))
})

function link(address: string): NetworkInterfaceInfo {
  const [netmask, mac, cidr] = ['255.255.255.0', '02:00:00:00:00:01', `${address}/24`]
  return { address, netmask, mac, cidr, family: 'IPv4', internal: false }
}
