import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findMount, parseCpuInfo, parseHugePages } from './machine.ts'

test('the processor is that of the first core', () => {
  const block = (name: string) =>
    `processor\t: 0\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: ${name}\nflags\t\t: a: b\n`
  assert.deepEqual(parseCpuInfo(`${block('First: One')}\n${block('Second')}`, 'x86_64'), {
    cpuArchitecture: 'x86_64',
    cpuFamily: '6',
    cpuModel: '85',
    cpuModelName: 'First: One',
  })
  // Other architectures list fewer fields.
  assert.equal(parseCpuInfo('processor\t: 0\nBogoMIPS\t: 50\n', 'aarch64').cpuModelName, '')
})

test('huge pages are counted, also where there are none', () => {
  const text =
    'MemTotal: 8 kB\nHugePages_Total:  10\nHugePages_Free:  4\nHugePages_Rsvd:  1\nHugepagesize:  2048 kB\n'
  assert.deepEqual(parseHugePages(text), {
    total: 10,
    used: 6,
    reserved: 1,
    pageSizeBytes: 2 * 1024 * 1024,
  })
  assert.deepEqual(parseHugePages(''), { total: 0, used: 0, reserved: 0, pageSizeBytes: 0 })
})

test('a path is on the deepest mount above it, and on the last of those in one place', () => {
  const info = [
    '22 1 8:1 / / rw - ext4 /dev/root rw',
    '23 22 8:2 / /var rw shared:1 - ext4 /dev/old rw',
    '24 22 8:3 / /var rw shared:2 - xfs /dev/new rw',
    '25 22 8:4 / /var/lib\\040x rw - btrfs /dev/x rw',
    '',
  ].join('\n')
  const deviceOf = (path: string) => findMount(info, path)?.device
  assert.equal(deviceOf('/var/lib/atoll'), '/dev/new')
  assert.equal(deviceOf('/variable'), '/dev/root')
  assert.equal(deviceOf('/var/lib x/y'), '/dev/x')
  assert.equal(findMount('', '/'), undefined)
})
