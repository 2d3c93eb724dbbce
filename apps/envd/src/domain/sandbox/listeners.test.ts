import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loopbackOnlyPorts, parseListeners } from './listeners.ts'

const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0FA1 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 313544 1 0000000000000000 100 0 0 10 0
   1: 00000000:C33F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 313353 1 0000000000000000 100 0 0 10 0
   3: 0204E90A:0FA1 0104E90A:A06C 01 00000000:00000000 00:00000000 00000000     0        0 313497 1 0000000000000000 20 4 28 11 -1
  12: 0100007F:1F90 0100007F:A06C 01 00000000:00000000 00:00000000 00000000     0        0 313497 1 0000000000000000 20 4 28 11 -1
 100: 0204E90A:0FA2 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 313353 1 0000000000000000 100 0 0 10 0
 101: 0100007F:0F`

const tcp6 = `  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:0FA2 00000000000000000000000000000000:0000 0A 00000000:00000000
   1: 00000000000000000000000000000000:0FA4 00000000000000000000000000000000:0000 0A 00000000:00000000
`

test('listening sockets are parsed with their scope', () => {
  assert.deepEqual(parseListeners(tcp + '\n' + tcp6), [
    { port: 4001, scope: 'loopback4' },
    { port: 49_983, scope: 'any' },
    { port: 4002, scope: 'other' },
    { port: 4002, scope: 'loopback6' },
    { port: 4004, scope: 'any' },
  ])
  for (const odd of ['', 'nonsense', '0: zz:0001 00:0000 0A '])
    assert.deepEqual(parseListeners(odd), [])
})

const cases: [string, Parameters<typeof loopbackOnlyPorts>[0], [number, string][]][] = [
  ['on loopback', [{ port: 1, scope: 'loopback4' }], [[1, '127.0.0.1']]],
  ['on that of IPv6', [{ port: 1, scope: 'loopback6' }], [[1, '::1']]],
  [
    'on both',
    [
      { port: 1, scope: 'loopback6' },
      { port: 1, scope: 'loopback4' },
    ],
    [[1, '127.0.0.1']],
  ],
  [
    'also open',
    [
      { port: 1, scope: 'loopback4' },
      { port: 1, scope: 'any' },
    ],
    [],
  ],
  ['elsewhere', [{ port: 1, scope: 'other' }], []],
]

for (const [what, listeners, hidden] of cases) {
  test(`a port ${what} is loopback-only: ${hidden.length > 0}`, () => {
    assert.deepEqual([...loopbackOnlyPorts(listeners)], hidden)
  })
}
