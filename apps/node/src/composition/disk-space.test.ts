/** Runs programs on the real kernel, without sandboxes, on disks that share a small data file system. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { repeat } from '@atoll/kit/repeat'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { createDiskSpace } from '../app/disk-space/disk-space.ts'
import { createDiscards } from '../linux/disks/discards.ts'
import { createMountedDisks } from '../linux/disks/mounted-disks.ts'

const mib = 1024 ** 2
const reserveBytes = 100 * mib
const diskMb = 1000
const diskOptions = ['-m', '0', '-O', '^has_journal', '-E', 'lazy_itable_init=1,nodiscard']

/** Writes different blocks, each with its own fsync, and retries on ENOSPC. Records the results in `argv[2]`. */
const honest = `
const { fsyncSync, openSync, renameSync, writeFileSync, writeSync } = require('node:fs')
const { createHash } = require('node:crypto')
const [, file, state] = process.argv
const fd = openSync(file, 'w')
let stored = 0, full = 0, failed = ''
for (;;) {
  const block = Buffer.alloc(1024 ** 2, createHash('sha256').update(String(stored)).digest())
  try {
    if (writeSync(fd, block, 0, block.length, stored * block.length) < block.length) full += 1
    else { fsyncSync(fd); stored += 1 }
  } catch (error) {
    if (error.code === 'ENOSPC') full += 1
    else failed = error.code
  }
  writeFileSync(state + '.next', JSON.stringify({ stored, full, failed }))
  renameSync(state + '.next', state)
}
`
/** Fills its disk faster than any pass can follow, then starts again. */
const flood = 'while :; do dd if=/dev/zero of=flood bs=1M 2>/dev/null; : > flood; done'
/** Hides preallocated blocks behind blocks that were just deleted, and writes to them without another allocation. */
const hide = `
while :; do
  head -c 200M /dev/zero > old; sync old; fallocate -l 200M pad; rm -f old; fallocate -l 200M new; rm -f pad
  dd if=/dev/zero of=new bs=1M count=200 conv=notrunc,fsync; rm -f new
done 2>/dev/null
`

test('hostile writers cannot make the host lose what another one has stored', async () => {
  await using world = await setup({ adopted: ['a', 'b'], admitted: ['c'] })
  const state = join(world.dir, 'state')
  const read = async () => JSON.parse(await readFile(state, 'utf8').catch(() => '{}'))
  world.start(process.execPath, ['-e', honest, world.point('a', 'data'), state])
  world.start('sh', ['-c', flood], world.point('b'))
  world.start('sh', ['-c', hide], world.point('c'))
  const hasMet = async () => (await read()).full > 50 && world.seen.passes > 50
  await waitFor('the disk to be full for a while', hasMet, { timeoutMs: 300_000, intervalMs: 100 })
  await world.stopWriters()

  const { stored, failed } = await read()
  assert.equal(failed, '')
  const { leastFreeBytes } = world.seen
  // The other half is for the host's own metadata of the images.
  assert.ok(leastFreeBytes > reserveBytes / 2, `${leastFreeBytes} bytes were free on the host`)
  await world.remount('a')
  await using file = await open(world.point('a', 'data'))
  const block = Buffer.alloc(mib)
  for (let index = 0; index < stored; index += 1) {
    await file.read(block, 0, mib, index * mib)
    const expected = createHash('sha256').update(String(index)).digest()
    assert.ok(block.equals(Buffer.alloc(mib, expected)), `block ${index} of ${stored} is lost`)
  }
})

/** Mounts disks before the node starts to divide the space, and more disks afterwards. */
async function setup(ids: {
  readonly adopted: readonly string[]
  readonly admitted: readonly string[]
}) {
  await using opened = new AsyncDisposableStack()
  const dir = await mkdtemp('/var/tmp/atoll-test-space-')
  opened.defer(() => rm(dir, { recursive: true }))
  const dataDir = join(dir, 'data')
  const disksDir = join(dir, 'disks')
  await makeImage(join(dir, 'image'), 1200, [])
  await mkdir(dataDir)
  await mount(join(dir, 'image'), dataDir)
  // Lazily: a mount namespace that another program created meanwhile may hold copies of the disks.
  opened.defer(async () => void (await run('umount', ['-l', dataDir])))
  const addDisk = async (id: string) => {
    await makeImage(join(dataDir, id), diskMb, diskOptions)
    await mkdir(join(disksDir, id), { recursive: true })
    await mount(join(dataDir, id), join(disksDir, id))
    opened.defer(() => unmount(join(disksDir, id)))
  }
  for (const id of ids.adopted) await addDisk(id)
  const { space, seen, stop } = openSpace(dataDir, disksDir)
  opened.defer(stop)
  for (const id of ids.admitted) {
    await addDisk(id)
    await space.admitDisk({ id, sizeBytes: diskMb * mib })
  }
  const writers: ChildProcess[] = []
  const stopWriters = async () => void (await Promise.all(writers.splice(0).map(killGroup)))
  opened.defer(stopWriters)
  const owned = opened.move()
  return {
    dir,
    seen,
    stopWriters,
    point: (id: string, name = '') => join(disksDir, id, name),
    start(command: string, args: readonly string[], cwd = dir) {
      writers.push(spawn(command, args, { cwd, detached: true, stdio: 'ignore' }))
    },
    /** Forces later reads to come from the image, not from the page cache. */
    async remount(id: string) {
      await unmount(join(disksDir, id))
      await mount(join(dataDir, id), join(disksDir, id))
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Divides the space in this process, like the node does. */
function openSpace(dataDir: string, disksDir: string) {
  const seen = { passes: 0, leastFreeBytes: Infinity }
  const disks = createMountedDisks({ dataDir, disksDir })
  const discards = createDiscards({ run, tryRun }, disksDir)
  const underway = new Set<Promise<void>>()
  const noted = (work: Promise<void>) => {
    underway.add(work)
    return work.finally(() => underway.delete(work))
  }
  const space = createDiskSpace({
    ...disks,
    limit(states, allowances) {
      seen.passes += 1
      disks.limit(states, allowances)
    },
    startDiscarding: (id) => noted(discards.startDiscarding(id)),
    stopDiscarding: (id) => noted(discards.stopDiscarding(id)),
    isDiscardingSlow: false,
    ballast: { bytes: () => 0, release: () => {}, restore: async () => {} },
    reserveBytes: () => reserveBytes,
    overcommit: undefined,
    nowMs: () => performance.now(),
    onLevel: () => {},
    onError: assert.fail,
  })
  const look = async () => {
    seen.leastFreeBytes = Math.min(seen.leastFreeBytes, disks.readHost().freeBytes)
    space.runPassIfDue()
  }
  const stopLooking = repeat(20, look, (error) => assert.fail(String(error)))
  const stop = async () => {
    await stopLooking()
    await Promise.allSettled(underway)
  }
  return { space, seen, stop }
}

/** Kills the whole process group, including children of the shell. */
async function killGroup(leader: ChildProcess): Promise<void> {
  const ended = once(leader, 'exit')
  process.kill(-(leader.pid ?? assert.fail()), 'SIGKILL')
  await ended
}

async function mount(image: string, point: string): Promise<void> {
  await run('mount', ['-n', '-o', 'loop,nodev,noatime', image, point])
}

/** Retries: a killed process holds the mount until its last write is done. */
async function unmount(point: string): Promise<void> {
  const isGone = async () => (await tryRun('umount', [point], { timeoutMs: 120_000 })).code === 0
  await waitFor(`${point} to be unmounted`, isGone, { timeoutMs: 120_000, intervalMs: 100 })
}

async function makeImage(path: string, sizeMb: number, options: readonly string[]): Promise<void> {
  await using file = await open(path, 'w')
  await file.truncate(sizeMb * mib)
  await run('mkfs.ext4', ['-q', '-F', ...options, path])
}
