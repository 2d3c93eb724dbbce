import assert from 'node:assert/strict'
import { test } from 'node:test'
import { debtBytes, divideSpace, guaranteedBytes } from './space-division.ts'
import type { Allowance, DiskState } from './space-division.ts'

const mib = 1024 ** 2
const gib = 1024 ** 3

/** Creates a trimmed disk. */
function disk(id: string, sizeBytes: number, insideBytes: number, imageBytes = insideBytes) {
  // Uses more than the guarantee.
  const usedBytes = insideBytes + guaranteedBytes
  const freeBytes = sizeBytes - insideBytes
  return { id, sizeBytes, usedBytes, freeBytes, imageBytes, isTrimmed: true }
}

function untrimmed(...values: Parameters<typeof disk>): DiskState {
  return { ...disk(...values), isTrimmed: false }
}

const host = (freeBytes: number, heldBytes = 0) => ({
  freeBytes,
  heldBytes,
  reserveBytes: 100,
  untrimmedGrowthBytes: Infinity,
})

test('no disk is restricted while all of them could fill up', () => {
  const disks = [disk('a', 1000, 200), disk('b', 1000, 0)]
  assert.deepEqual(divideSpace(disks, host(2000)), {
    spareBytes: 1900,
    slackBytes: 100,
    untrimmedSlackBytes: 100,
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

test('a disk that is not trimmed may fill up, and counts with all holes of its image', () => {
  // Deletes 500 and writes them elsewhere: the image grows by 500, and nothing more is used inside.
  const disks = [untrimmed('a', 1000, 500), disk('b', 1000, 0)]
  const { spareBytes, allowances } = divideSpace(disks, host(1000))
  assert.deepEqual(Object.fromEntries(allowances ?? []), { a: 500, b: 400 })
  assert.equal(spareBytes, 900)
})

test('disks that are not trimmed are locked, emptiest first, when their holes exceed the space', () => {
  const disks = [untrimmed('a', 1000, 500), untrimmed('b', 1000, 100), disk('c', 1000, 0)]
  const allowedOf = (freeBytes: number) =>
    Object.fromEntries(divideSpace(disks, host(freeBytes)).allowances ?? [])
  assert.deepEqual(allowedOf(1500), { a: 500, b: 900, c: 0 })
  // All that is used inside a locked disk may be hidden debts.
  assert.deepEqual(allowedOf(1000), { a: 500, b: 'locked', c: 300 })
  // Locking the other disk saves nothing now, since its holes are no more than its hidden debts, but it must not add any.
  assert.deepEqual(allowedOf(300), { a: 'locked', b: 'locked', c: 0 })
})

test('where discarding is slow, disks count with what they can write until the next division', () => {
  const disks = [untrimmed('a', 1000, 100), untrimmed('b', 1000, 0)]
  const supply = { ...host(1200), untrimmedGrowthBytes: 300 }
  const { slackBytes, untrimmedSlackBytes, allowances } = divideSpace(disks, supply)
  assert.deepEqual(Object.fromEntries(allowances ?? []), { a: 300, b: 300 })
  assert.deepEqual([slackBytes, untrimmedSlackBytes], [-800, 400])
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

/**
 * Simulates a host and disks in which programs write and delete at random, with write-back at any moment. Writers choose
 * which blocks they get. The kernel enforces at every write what the node last allowed.
 */
test('whatever sandboxes do between two passes, the host can store all that they wrote', () => {
  const seed = Number(process.env['ATOLL_TEST_SEED'] ?? Date.now() % 2 ** 31)
  const random = generator(seed)
  const pick = (below: number) => Math.floor(random() * below)
  for (let round = 0; round < 100; round += 1) {
    const totalBytes = (1000 + pick(5000)) * mib
    const disks = Array.from({ length: 1 + pick(6) }, (_, index) =>
      simulatedDisk(`${index}`, (200 + pick(4000)) * mib, pick(2) === 0),
    )
    const pass = () => dividedAmong(disks, totalBytes)
    pass()
    for (let step = 0; step < 200; step += 1) {
      const one = disks[pick(disks.length)] ?? assert.fail()
      const bytes = pick(2000) * mib
      const steps = [
        () => one.write(bytes, random()),
        () => one.write(bytes, 0),
        () => one.deleteStored(bytes),
        () => one.deleteDirty(bytes),
        () => one.writeBack(bytes),
        () => pick(10) === 0 && one.trim(),
        pass,
      ]
      steps[pick(steps.length)]?.()
      const worst = disks.reduce((sum, { worstBytes }) => sum + worstBytes(), 0)
      assert.ok(worst <= totalBytes - keptBytes, `seed ${seed}, round ${round}: ${worst}`)
    }
  }
})

const keptBytes = 100 * mib

function dividedAmong(disks: readonly ReturnType<typeof simulatedDisk>[], totalBytes: number) {
  const states = disks.map(({ state }) => state())
  const taken = states.reduce((sum, { imageBytes }) => sum + imageBytes, 0)
  const { allowances } = divideSpace(states, {
    freeBytes: totalBytes - taken,
    reserveBytes: keptBytes,
    heldBytes: 0,
    untrimmedGrowthBytes: Infinity,
  })
  for (const one of disks) one.allow(allowances?.get(one.id))
}

/** Counts the blocks of a disk by whether they are used inside, and whether they are allocated in the image. */
function simulatedDisk(id: string, sizeBytes: number, startsTrimmed: boolean) {
  let isTrimmed = startsTrimmed
  let stored = 0
  let dirty = 0
  let stale = 0
  let reserved = 0
  const freeBytes = () => sizeBytes - stored - dirty
  return {
    id,
    worstBytes: () => stored + dirty + stale,
    state(): DiskState {
      const bytes = { sizeBytes, usedBytes: stored + dirty, freeBytes: freeBytes() }
      return { id, ...bytes, imageBytes: stored + stale, isTrimmed }
    },
    allow(allowed: Allowance = freeBytes()) {
      reserved = allowed === 'locked' ? sizeBytes : freeBytes() - allowed
    },
    write(bytes: number, staleShare: number) {
      const written = Math.min(bytes, Math.max(0, freeBytes() - reserved))
      const emptyBytes = freeBytes() - stale
      const reused = Math.max(
        written - emptyBytes,
        Math.floor(Math.min(stale, written * staleShare)),
      )
      stale -= reused
      stored += reused
      dirty += written - reused
    },
    deleteStored(bytes: number) {
      const deleted = Math.min(bytes, stored)
      stored -= deleted
      if (!isTrimmed) stale += deleted
    },
    deleteDirty: (bytes: number) => void (dirty -= Math.min(bytes, dirty)),
    writeBack(bytes: number) {
      const written = Math.min(bytes, dirty)
      dirty -= written
      stored += written
    },
    trim() {
      isTrimmed = true
      stale = 0
    },
  }
}

function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
