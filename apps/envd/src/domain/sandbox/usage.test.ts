import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuTicksOf, parseMemory, privatePagesOf } from './usage.ts'

test('CPU time includes reaped children, whatever the program name', () => {
  const stat = '7 (a) (b c) S 1 7 7 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 5 1000 10'
  assert.equal(cpuTicksOf(stat), 110)
  for (const broken of ['', '7 (sh', '7 (sh) S 1', '7 (sh) S 1 7 7 0 -1 4 1 2 0 0 a b c d']) {
    assert.equal(cpuTicksOf(broken), 0)
  }
})

test('shared memory is not counted as private', () => {
  assert.equal(privatePagesOf('1000 300 100 1 0 50 0\n'), 200)
  for (const broken of ['', 'x y z', '5 1 9']) assert.equal(privatePagesOf(broken), 0)
})

test('reclaimable memory is not counted as used', () => {
  const meminfo =
    'MemTotal:  1000 kB\nMemFree: 300 kB\nBuffers: 50 kB\nCached: 200 kB\nSReclaimable: 20 kB\n'
  assert.deepEqual(parseMemory(meminfo), {
    totalBytes: 1000 * 1024,
    usedBytes: 430 * 1024,
    cacheBytes: 220 * 1024,
  })
  assert.equal(parseMemory('nothing of the kind'), undefined)
})
