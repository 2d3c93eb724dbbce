import assert from 'node:assert/strict'
import { test } from 'node:test'
import { debtBytes, divideSpace, guaranteedBytes, reserveFor } from './disk-space.ts'
import type { DiskState } from './disk-space.ts'

const mib = 1024 ** 2
const gib = 1024 ** 3

function disk(id: string, sizeBytes: number, usedBytes: number, imageBytes = usedBytes): DiskState {
  // Uses more than the guarantee.
  const ownBytes = usedBytes + guaranteedBytes
  return { id, sizeBytes, usedBytes: ownBytes, freeBytes: sizeBytes - usedBytes, imageBytes }
}

const host = (freeBytes: number, heldBytes = 0) => ({ freeBytes, heldBytes, reserveBytes: 100 })

test('no disk is restricted while all of them could fill up', () => {
  const disks = [disk('a', 1000, 200), disk('b', 1000, 0)]
  assert.deepEqual(divideSpace(disks, host(2000)), {
    spareBytes: 1900,
    slackBytes: 100,
    allowances: undefined,
  })
})

test('disks share what the host has left, and small demands are met in full', () => {
  const disks = [disk('a', 1000, 0), disk('b', 1000, 950), disk('c', 1000, 0)]
  const { allowances } = divideSpace(disks, host(550))
  assert.deepEqual(
    allowances,
    new Map([
      ['a', 200],
      ['b', 50],
      ['c', 200],
    ]),
  )
})

test('data that the host has not stored yet is taken off what may be shared', () => {
  const disks = [disk('a', 1000, 300, 100), disk('b', 1000, 0)]
  assert.equal(debtBytes(disks[0] ?? disk('', 0, 0)), 200)
  const { spareBytes, allowances } = divideSpace(disks, host(600))
  assert.equal(spareBytes, 300)
  assert.deepEqual(
    [...(allowances ?? [])].map(([, bytes]) => bytes),
    [150, 150],
  )
})

test('stale blocks of an image are not counted against the debts of other disks', () => {
  const disks = [disk('a', 1000, 100, 900), disk('b', 1000, 300, 100)]
  assert.equal(divideSpace(disks, host(1000)).spareBytes, 700)
})

test('space held for operations is not given to disks', () => {
  const { spareBytes, allowances } = divideSpace([disk('a', 1000, 0)], host(1000, 850))
  assert.deepEqual([spareBytes, allowances?.get('a')], [50, 50])
})

test('the first megabytes of each disk are its own, whatever others have taken', () => {
  const quiet = { ...disk('quiet', gib, 0), usedBytes: 4 * mib }
  const greedy = disk('greedy', 4 * gib, 2 * gib)
  const roomFor = (bytes: number) => [
    ...(divideSpace([quiet, greedy], host(bytes + 100)).allowances?.values() ?? []),
  ]
  assert.deepEqual(roomFor(100 * mib), [80 * mib, 20 * mib])
  assert.deepEqual(roomFor(60 * mib), [60 * mib, 0])
  assert.deepEqual(roomFor(30 * mib), [30 * mib, 0])
  assert.equal(divideSpace([quiet, greedy], host(60 * mib + 100)).spareBytes, 0)
})

test('a host that owes more than it has allows no growth', () => {
  const { spareBytes, allowances } = divideSpace([disk('a', 1000, 500, 0)], host(300))
  assert.deepEqual([spareBytes, allowances?.get('a')], [-300, 0])
})

test('the reserve is 5 % of the file system, more of a small one, and never over 1 GiB', () => {
  assert.deepEqual(
    [3 * gib, 20 * gib, 1000 * gib].map((bytes) => Math.round(reserveFor(bytes, undefined) / mib)),
    [307, 1024, 1024],
  )
})

/**
 * Simulates a host and disks in which programs write and delete at random, with write-back at any moment. The kernel
 * enforces at every write what the node last allowed.
 */
test('whatever sandboxes do between two passes, the host can store all that they wrote', () => {
  const seed = Number(process.env['ATOLL_TEST_SEED'] ?? Date.now() % 2 ** 31)
  const random = generator(seed)
  const pick = (below: number) => Math.floor(random() * below)
  const pickMb = (below: number) => pick(below) * mib
  for (let round = 0; round < 200; round += 1) {
    const total = gib + pickMb(5000)
    const kept = 100 * mib
    const disks = Array.from({ length: 1 + pick(6) }, (_, index) => ({
      id: String(index),
      sizeBytes: 200 * mib + pickMb(4000),
      usedBytes: 0,
      imageBytes: 0,
      allowed: 0,
    }))
    const taken = () => disks.reduce((sum, { imageBytes }) => sum + imageBytes, 0)
    const pass = () => {
      const states = disks.map((one) => ({ ...one, freeBytes: one.sizeBytes - one.usedBytes }))
      const free = { freeBytes: total - taken(), reserveBytes: kept, heldBytes: 0 }
      const { allowances } = divideSpace(states, free)
      for (const one of disks)
        one.allowed = allowances?.get(one.id) ?? one.sizeBytes - one.usedBytes
    }
    pass()
    for (let step = 0; step < 100; step += 1) {
      const one = disks[pick(disks.length)]
      if (!one) continue
      const choice = pick(10)
      if (choice < 6) {
        const written = Math.min(pickMb(2000), one.allowed)
        one.usedBytes += written
        one.allowed -= written
      } else if (choice < 7) {
        // Deleted before write-back: nothing of it is in the image.
        const deleted = Math.min(pickMb(500), Math.max(0, one.usedBytes - one.imageBytes))
        one.usedBytes -= deleted
        one.allowed += deleted
      } else if (choice < 9) {
        one.imageBytes = Math.max(
          one.imageBytes,
          Math.min(one.usedBytes, one.imageBytes + pickMb(900)),
        )
      } else {
        pass()
      }
      const worst = disks.reduce(
        (sum, { usedBytes, imageBytes }) => sum + Math.max(usedBytes, imageBytes),
        0,
      )
      assert.ok(worst <= total - kept, `seed ${seed}, round ${round}: ${worst} of ${total}`)
    }
  }
})

function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
