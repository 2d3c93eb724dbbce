import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { DiskState } from '../../domain/host/disk-space.ts'
import { createDiskSpace } from './disk-space.ts'

const mib = 1024 ** 2
const gib = 1024 ** 3

/** Creates a data file system with a reserve of 100 MiB, and disks whose sandboxes have used their guarantees. */
function setup(given: { readonly freeMb: number; readonly overcommit?: number }) {
  const state = {
    freeBytes: given.freeMb * mib,
    freeInodes: 100_000,
    ballastBytes: 0,
    nowMs: 0,
    disks: [] as DiskState[],
    allowed: undefined as ReadonlyMap<string, number> | undefined,
  }
  const seen = { passes: 0, switched: [] as string[], levels: [] as string[], restored: 0 }
  const space = createDiskSpace({
    readHost: () => ({ totalBytes: 10 * gib, hasInodeLimit: true, ...state }),
    readDisks: () => state.disks,
    limit(_disks, allowances) {
      seen.passes += 1
      state.allowed = allowances
    },
    startDiscarding: async (id) => void seen.switched.push(`${id} on`),
    stopDiscarding: async (id) => void seen.switched.push(`${id} off`),
    ballast: {
      bytes: () => state.ballastBytes,
      release: () => void (state.ballastBytes = 0),
      restore: async () => void (seen.restored += 1),
    },
    reserveBytes: () => 100 * mib,
    overcommit: given.overcommit,
    nowMs: () => state.nowMs,
    onLevel: ({ level }) => void seen.levels.push(level),
    onError: assert.fail,
  })
  const look = () => {
    state.nowMs += 10_000
    space.look()
  }
  return { space, state, seen, look }
}

function disk(id: string, sizeMb: number, imageMb = 100): DiskState {
  const bytes = { usedBytes: 100 * mib, freeBytes: (sizeMb - 100) * mib, imageBytes: imageMb * mib }
  return { id, sizeBytes: sizeMb * mib, ...bytes }
}

const sandbox = { diskBytes: gib, committedBytes: () => 0 }
const isDiskFull = (text: RegExp) => (error: unknown) =>
  error instanceof Fault && error.reason === 'disk_full' && text.test(error.message)

test('while there is plenty of space, new disks and operations cost no look at the host', () => {
  const { space, seen } = setup({ freeMb: 9000 })
  for (let count = 0; count < 4; count += 1) {
    space.checkSandbox(sandbox)
    using _room = space.hold(mib, 'copying')
    space.admitDisk(2 * gib)
  }
  assert.equal(seen.passes, 1)
  space.admitDisk(2 * gib)
  assert.equal(seen.passes, 2)
})

test('a new disk is limited before anything is written to it', () => {
  const { space, state } = setup({ freeMb: 1100 })
  state.disks = [disk('a', 2100), disk('b', 2100)]
  space.admitDisk(2100 * mib)
  assert.deepEqual(
    [...(state.allowed ?? [])],
    [
      ['a', 500 * mib],
      ['b', 500 * mib],
    ],
  )
})

test('an operation gets its space from the shares of the disks, and gives it back', () => {
  const { space, state, look } = setup({ freeMb: 1100 })
  state.disks = [disk('a', 2100)]
  look()
  {
    using _room = space.hold(600 * mib, 'copying')
    assert.equal(state.allowed?.get('a'), 400 * mib)
  }
  look()
  assert.equal(state.allowed?.get('a'), 1000 * mib)
})

test('what does not fit is refused with numbers, and nothing is held', () => {
  const { space } = setup({ freeMb: 150 })
  const refused = isDiskFull(
    /^Not enough disk space on the node: copying needs 51 MB, 50 MB are free above the reserve of 100 MB\. Delete .*disk space\.$/,
  )
  assert.throws(() => space.hold(51 * mib, 'copying'), refused)
  assert.throws(() => space.checkSandbox(sandbox), isDiskFull(/creating a sandbox needs 64 MB/))
  space.hold(50 * mib, 'copying')[Symbol.dispose]()
})

test('what was freed since the last pass counts', () => {
  const { space, state } = setup({ freeMb: 0 })
  state.freeBytes = gib
  space.checkSandbox(sandbox)
})

test('too few inodes and too much commitment refuse a sandbox', () => {
  const { space, state, look } = setup({ freeMb: 9000, overcommit: 2 })
  space.checkSandbox({ diskBytes: gib, committedBytes: () => 19 * gib })
  const more = { diskBytes: gib, committedBytes: () => 20 * gib }
  assert.throws(() => space.checkSandbox(more), isDiskFull(/ATOLL_DISK_OVERCOMMIT/))
  state.freeInodes = 999
  look()
  assert.throws(() => space.checkSandbox(sandbox), isDiskFull(/inodes.*999 are free/))
})

test('while space is scarce, disks give back at once what is deleted inside', async () => {
  const { state, seen, look } = setup({ freeMb: 1100 })
  const settle = async () => {
    for (let passes = 0; passes < 3; passes += 1) {
      look()
      await setImmediate()
    }
    return seen.switched.splice(0)
  }
  state.disks = [disk('a', 4000, 200), disk('b', 4000, 900)]
  assert.deepEqual(await settle(), [])
  state.freeBytes = 300 * mib
  assert.deepEqual(await settle(), ['b on', 'a on'])
  state.freeBytes = 600 * mib
  assert.deepEqual(await settle(), [])
  state.freeBytes = 1100 * mib
  assert.deepEqual(await settle(), ['b off', 'a off'])
  assert.deepEqual(seen.levels, ['shared', 'scarce', 'shared'])
})

test('the ballast goes when nearly nothing is free, and comes back when there is room', () => {
  const { state, seen, look } = setup({ freeMb: 20 })
  state.ballastBytes = 64 * mib
  look()
  assert.deepEqual([state.ballastBytes, seen.restored], [0, 0])
  state.freeBytes = gib
  look()
  assert.equal(seen.restored, 1)
})
