import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Allowances, DiskState } from '../../domain/host/space-division.ts'
import { createDiskSpace } from './disk-space.ts'

const mib = 1024 ** 2
const gib = 1024 ** 3

/** Creates a data file system with a reserve of 100 MiB, and disks whose sandboxes have used their guarantees. */
function setup(given: {
  readonly freeMb: number
  /** Disks that an earlier agent has left. */
  readonly disks?: readonly DiskState[]
  readonly overcommit?: number
  readonly isDiscardingSlow?: boolean
  readonly startDiscarding?: (id: string) => Promise<void>
}) {
  const state = {
    freeBytes: given.freeMb * mib,
    freeInodes: 100_000,
    ballastBytes: 0,
    nowMs: 0,
    disks: given.disks ?? [],
    allowed: undefined as Allowances | undefined,
  }
  const errors: unknown[] = []
  const seen = { passes: 0, switched: [] as string[], levels: [] as string[], restored: 0 }
  function note(id: string, isTrimmed: boolean): void {
    seen.switched.push(`${id} ${isTrimmed ? 'on' : 'off'}`)
    state.disks = state.disks.map((one) => (one.id === id ? { ...one, isTrimmed } : one))
  }
  const space = createDiskSpace({
    readHost: () => ({ totalBytes: 10 * gib, hasInodeLimit: true, ...state }),
    readDisks: () => state.disks,
    limit(_disks, allowances) {
      seen.passes += 1
      state.allowed = allowances
    },
    async startDiscarding(id) {
      await given.startDiscarding?.(id)
      note(id, true)
    },
    stopDiscarding: async (id) => note(id, false),
    isDiscardingSlow: given.isDiscardingSlow ?? false,
    ballast: {
      bytes: () => state.ballastBytes,
      release: () => void (state.ballastBytes = 0),
      restore: async () => void (seen.restored += 1),
    },
    reserveBytes: () => 100 * mib,
    overcommit: given.overcommit,
    nowMs: () => state.nowMs,
    onLevel: ({ level }) => void seen.levels.push(level),
    onError: (error) => void errors.push(error),
  })
  const look = () => {
    state.nowMs += 10_000
    space.runPassIfDue()
  }
  /** Passes until all switches that a pass starts are done. */
  const settle = async () => {
    for (let passes = 0; passes < 5; passes += 1) {
      look()
      await setImmediate()
    }
    return seen.switched.splice(0)
  }
  /** Mounts and admits another disk. */
  const add = async (one: DiskState) => {
    state.disks = [...state.disks, one]
    await space.admitDisk(one)
  }
  return { space, state, seen, errors, look, settle, add }
}

function disk(id: string, sizeMb: number, imageMb = 100): DiskState {
  const bytes = { usedBytes: 100 * mib, freeBytes: (sizeMb - 100) * mib, imageBytes: imageMb * mib }
  return { id, sizeBytes: sizeMb * mib, ...bytes, isTrimmed: false }
}

const sandbox = { diskBytes: gib, committedBytes: () => 0 }
const isDiskFull = (text: RegExp) => (error: unknown) =>
  error instanceof Fault && error.reason === 'disk_full' && text.test(error.message)

test('while there is plenty of space, new disks and operations cost no look at the host', async () => {
  const { space, seen } = setup({ freeMb: 9000 })
  for (let count = 0; count < 4; count += 1) {
    space.checkSandbox(sandbox)
    using _room = space.hold(mib, 'copying')
    await space.admitDisk({ id: `${count}`, sizeBytes: 2 * gib })
  }
  assert.deepEqual([seen.passes, seen.switched], [1, []])
  await space.admitDisk({ id: 'last', sizeBytes: 2 * gib })
  assert.deepEqual([seen.passes, seen.switched], [2, ['last on']])
})

test('a new disk is limited before anything is written to it', async () => {
  const { state, seen, add } = setup({ freeMb: 1100 })
  await add(disk('a', 2100))
  await add(disk('b', 2100))
  assert.deepEqual(seen.switched, ['a on', 'b on'])
  assert.deepEqual(Object.fromEntries(state.allowed ?? []), { a: 500 * mib, b: 500 * mib })
})

test('a disk that is mounted but not admitted yet is never locked', async () => {
  const { state, look, add } = setup({ freeMb: 1100 })
  await add(disk('a', 2100))
  state.disks = [...state.disks, disk('b', 2100)]
  look()
  assert.deepEqual(Object.fromEntries(state.allowed ?? []), { a: 500 * mib, b: 500 * mib })
})

test('disks of an earlier agent are locked until they are trimmed, if they could fill the host', async () => {
  const { state, look } = setup({ freeMb: 1100, disks: [disk('a', 2100), disk('b', 2100)] })
  assert.deepEqual(Object.fromEntries(state.allowed ?? []), { a: 'locked', b: 'locked' })
  look()
  await setImmediate()
  look()
  assert.deepEqual(Object.fromEntries(state.allowed ?? []), { a: 500 * mib, b: 500 * mib })
})

test('a disk that cannot be switched stays locked, and is tried again later', async () => {
  const tried: string[] = []
  const startDiscarding = async (id: string) => {
    tried.push(id)
    if (tried.length < 3) throw new Error('cannot remount')
  }
  const disks = [disk('a', 2100)]
  const { state, errors, look, settle } = setup({ freeMb: 1100, disks, startDiscarding })
  await settle()
  assert.deepEqual([tried, state.allowed?.get('a')], [['a', 'a'], 'locked'])
  await settle()
  look()
  assert.deepEqual([tried.length, state.allowed?.get('a')], [3, 1000 * mib])
  assert.equal(errors.length, 2)
})

test('an operation gets its space from the shares of the disks, and gives it back', async () => {
  const { space, state, look, add } = setup({ freeMb: 1100 })
  await add(disk('a', 2100))
  {
    using _room = space.hold(600 * mib, 'copying')
    assert.equal(state.allowed?.get('a'), 400 * mib)
  }
  look()
  assert.equal(state.allowed?.get('a'), 1000 * mib)
})

test('an operation that does not fit is refused with the numbers, and reserves nothing', () => {
  const { space } = setup({ freeMb: 150 })
  const refused = isDiskFull(
    /^Not enough disk space on the node: copying needs 51 MB, 50 MB are free above the reserve of 100 MB\. Delete .*disk space\.$/,
  )
  assert.throws(() => space.hold(51 * mib, 'copying'), refused)
  assert.throws(() => space.checkSandbox(sandbox), isDiskFull(/creating a sandbox needs 64 MB/))
  space.hold(50 * mib, 'copying')[Symbol.dispose]()
})

test('space that was freed since the last pass counts', () => {
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

test('disks return deleted blocks at once before they could fill the host, and until far from that', async () => {
  const { state, seen, settle, add } = setup({ freeMb: 9000 })
  await add(disk('a', 4000, 200))
  await add(disk('b', 4000, 100))
  assert.deepEqual(await settle(), [])
  state.freeBytes = 8100 * mib
  assert.deepEqual(await settle(), ['b on', 'a on'])
  assert.deepEqual(seen.levels, [])
  state.freeBytes = 7000 * mib
  await settle()
  state.freeBytes = 300 * mib
  await settle()
  state.freeBytes = 8700 * mib
  assert.deepEqual(await settle(), [])
  state.freeBytes = 9500 * mib
  assert.deepEqual(await settle(), ['b off', 'a off'])
  assert.deepEqual(seen.levels, ['shared', 'scarce', 'roomy'])
})

test('where discarding is slow, disks share space without it until space is scarce', async () => {
  const { state, settle, add } = setup({ freeMb: 3000, isDiscardingSlow: true })
  await add(disk('a', 9000))
  assert.deepEqual([await settle(), state.allowed?.get('a')], [[], 1000 * mib])
  state.freeBytes = 1700 * mib
  assert.deepEqual(await settle(), [])
  state.freeBytes = 1500 * mib
  assert.deepEqual([await settle(), state.allowed?.get('a')], [['a on'], 1400 * mib])
  state.freeBytes = 3000 * mib
  assert.deepEqual(await settle(), ['a off'])
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
