import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import {
  childrenOf,
  endlessWaits,
  findLost,
  isEndlessWait,
  findOrphanedRequests,
  parseMappings,
} from './gvisor-orphaned-requests.ts'

const futex = process.arch === 'arm64' ? '98' : '202'

test('a wait for another process without a limit is recognized', () => {
  const call = (line: string) => isEndlessWait(`${line} 0x0 0x0 0xc000865990 0x40714e`)
  assert.ok(call(`${futex} 0x7fad2adf3000 0x0 0x199 0x0`))
  assert.ok(!call(`${futex} 0x20e5c60 0x80 0x0 0x0`), 'for a thread of its own')
  assert.ok(!call(`${futex} 0x7f79ca000f68 0x0 0x0 0xc0008dfc58`), 'with a limit')
  assert.ok(!call('271 0xc0000cd6f0 0x0 0x0 0x0'), 'another call')
  for (const line of ['running', '', '-1 0x7ffe 0x40']) assert.ok(!isEndlessWait(line))
})

// Recorded from a sandbox whose child with the mapping 3eff3000 was killed, and from the process that all children fork
// from.
const memory = '00:01 69271                      /memfd:systrap-memory (deleted)'
const files = '00:01 69002                      /memfd:flipcall_packet_windows (deleted)'
const own = `00400000-020dd000 r-xp 00000000 fe:00 1234                       /usr/bin/runsc
7ff94e405000-7ff94e407000 rw-s 3eff3000 ${memory}
7ff94e407000-7ff94e408000 rw-p 00000000 00:00 0 
7ff94e508000-7ff94e50a000 rw-s 00000000 ${files}
`
const source = `7f9af0520000-7f9af0521000 r--s 3fffe000 ${memory}
7f9af0549000-7f9af1549000 rw-s 3eff5000 ${memory}
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`
const asked = `7f9af0520000-7f9af0522000 r--s 3eff2000 ${memory}\n`
const wait = (address: string) =>
  `1828 ${futex} ${address} 0x0 0x7a 0x0 0x0 0x0 0xc000865990 0x40714e`

const waits = [
  ['has gone', '0x7ff94e405000', [source], true],
  ['has gone, and the page is not the first of its mapping', '0x7ff94e406004', [source], true],
  ['lives', '0x7ff94e405000', [source, asked], false],
  ['serves files, and is no child', '0x7ff94e508000', [source], false],
  ['is not to be seen', '0x7ff94e405000', [], false],
  ['is not known', '0x7ff94e407000', [source], false],
] as const

for (const [who, address, children, isLost] of waits) {
  test(`an answer of one who ${who} is ${isLost ? '' : 'not '}lost`, () => {
    const lost = findLost([wait(address)], parseMappings(own), children.map(parseMappings))
    assert.deepEqual(lost, isLost ? [wait(address)] : [])
  })
}

test('a process that waits for no other process has lost nothing, with a dead child or without', async (t) => {
  const parent = spawn('sh', ['-c', 'sleep 0 & exec sleep 1000'])
  t.after(() => parent.kill())
  await waitFor('the child', () => childrenOf(parent.pid ?? 0).length === 1)
  assert.deepEqual(endlessWaits(parent.pid ?? 0), [])
  assert.deepEqual(findOrphanedRequests(parent.pid ?? 0), [])
})

test('a process that is gone waits for nothing', () => {
  assert.deepEqual(childrenOf(2 ** 22 + 1), [])
  assert.deepEqual(findOrphanedRequests(2 ** 22 + 1), [])
})
