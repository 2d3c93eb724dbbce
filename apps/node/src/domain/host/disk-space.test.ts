import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reserveFor } from './disk-space.ts'

const mib = 1024 ** 2
const gib = 1024 ** 3

test('the reserve is 5 % of the file system, more of a small one, and never over 1 GiB', () => {
  assert.deepEqual(
    [3 * gib, 20 * gib, 1000 * gib].map((bytes) => Math.round(reserveFor(bytes, undefined) / mib)),
    [307, 1024, 1024],
  )
})
