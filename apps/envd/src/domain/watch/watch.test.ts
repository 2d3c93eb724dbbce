import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNetworkMount } from './watch.ts'

const mounts: [string, number, boolean][] = [
  ['NFS', 0x6969, true],
  ['CIFS', 0xff534d42, true],
  ['SMB', 0x517b, true],
  ['SMB 2', 0xfe534d42, true],
  ['FUSE', 0x65735546, true],
  ['ext4', 0xef53, false],
  ['overlayfs', 0x794c7630, false],
  ['tmpfs', 0x0102_1994, false],
  ['the 9p of gVisor', 0x0102_1997, false],
]

for (const [name, magic, expected] of mounts) {
  test(`${name} is ${expected ? 'a' : 'no'} network mount`, () => {
    assert.equal(isNetworkMount(magic), expected)
  })
}
