import assert from 'node:assert/strict'
import { mkdir, mkdtemp, open, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { createDiscards, punchesHolesSlowly } from './discards.ts'
import { createMountedDisks } from './mounted-disks.ts'

const mib = 1024 ** 2

/** Creates two real disks like the node does, and a mount point without a mount. */
async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-disks-'))
  const disksDir = join(dir, 'disks')
  for (const id of ['c1', 'c2', 'c3']) await mkdir(join(disksDir, id), { recursive: true })
  for (const id of ['c1', 'c2']) {
    const image = join(dir, `${id}.img`)
    await using file = await open(image, 'w')
    await file.truncate(600 * mib)
    const options = ['-m', '0', '-O', '^has_journal', '-E', 'lazy_itable_init=1,nodiscard']
    await run('mkfs.ext4', ['-q', '-F', ...options, image])
    await run('mount', ['-n', '-o', 'loop', image, join(disksDir, id)])
  }
  return {
    disks: createMountedDisks({ dataDir: dir, disksDir }),
    discards: createDiscards({ run, tryRun }, disksDir),
    remove: (id: string, sizeMb: number) => rm(join(disksDir, id, `file-${sizeMb}`)),
    imageBytes: async (id: string) => (await stat(join(dir, `${id}.img`))).blocks * 512,
    point: (id: string) => join(disksDir, id),
    write: (id: string, sizeMb: number) =>
      writeFile(join(disksDir, id, `file-${sizeMb}`), Buffer.alloc(sizeMb * mib, 1)),
    async [Symbol.asyncDispose]() {
      for (const id of ['c1', 'c2']) await run('umount', [join(disksDir, id)])
      await rm(dir, { recursive: true })
    },
  }
}

test('a write beyond the limit of a disk fails with ENOSPC, also for root, and df shows it', async () => {
  await using world = await setup()
  const states = world.disks.readDisks()
  assert.deepEqual(
    states.map(({ id, sizeBytes }) => [id, sizeBytes]),
    [
      ['c1', 600 * mib],
      ['c2', 600 * mib],
    ],
  )
  world.disks.limit(states, new Map([['c1', 50 * mib]]))
  const { bavail, bsize } = await statfs(world.point('c1'))
  assert.equal(Math.round((bavail * bsize) / mib), 50)
  await world.write('c1', 20)
  await assert.rejects(world.write('c1', 40), { code: 'ENOSPC' })
  await world.write('c2', 100)

  world.disks.limit(world.disks.readDisks(), undefined)
  await world.write('c1', 41)
})

test('dirty pages count as used before they are written to the disk', async () => {
  await using world = await setup()
  const [before] = world.disks.readDisks()
  await world.write('c1', 50)
  const [after] = world.disks.readDisks()
  assert.ok(before && after)
  assert.equal(Math.round((before.freeBytes - after.freeBytes) / mib), 50)
  await run('sync', ['-f', world.point('c1')])
  const [stored] = world.disks.readDisks()
  assert.ok((stored?.imageBytes ?? 0) - before.imageBytes >= 50 * mib)
})

test('a disk that was unmounted is left out', async () => {
  await using world = await setup()
  const states = world.disks.readDisks()
  await run('umount', [world.point('c2')])
  world.disks.limit(states, new Map([['c2', 0]]))
  assert.deepEqual(
    world.disks.readDisks().map(({ id }) => id),
    ['c1'],
  )
  await run('mount', ['-n', '-t', 'tmpfs', 'tmpfs', world.point('c2')])
  assert.equal(world.disks.readDisks().length, 1)
})

test('a locked disk gets no block, not even after a deletion', async () => {
  await using world = await setup()
  await world.write('c1', 30)
  const states = world.disks.readDisks()
  world.disks.limit(states, new Map([['c1', 'locked']]))
  await assert.rejects(world.write('c1', 1), { code: 'ENOSPC' })
  await world.remove('c1', 30)
  await assert.rejects(world.write('c1', 1), { code: 'ENOSPC' })
  world.disks.limit(world.disks.readDisks(), undefined)
  await world.write('c1', 1)
})

test('a trimmed disk returns deleted blocks to the host at once, until it is switched back', async () => {
  await using world = await setup()
  const isTrimmed = () => world.disks.readDisks().map((disk) => disk.isTrimmed)
  const emptyBytes = await world.imageBytes('c1')
  const writeAndRemove = async (sizeMb: number) => {
    await world.write('c1', sizeMb)
    await run('sync', ['-f', world.point('c1')])
    await world.remove('c1', sizeMb)
    return Math.max(0, Math.round(((await world.imageBytes('c1')) - emptyBytes) / mib))
  }
  assert.deepEqual([await writeAndRemove(20), isTrimmed()], [20, [false, false]])

  await world.discards.startDiscarding('c1')
  assert.ok((await world.imageBytes('c1')) - emptyBytes < mib)
  assert.deepEqual(isTrimmed(), [true, false])
  assert.equal(await writeAndRemove(30), 0)

  await world.discards.stopDiscarding('c1')
  assert.deepEqual(isTrimmed(), [false, false])
  assert.equal(await writeAndRemove(40), 40)
})

test('punching holes is slow only where the data file system discards without a journal', async () => {
  await using world = await setup()
  const loop = world.point('c1')
  assert.equal(punchesHolesSlowly(loop), false)
  await run('mount', ['-n', '-o', 'remount,discard', loop])
  assert.equal(punchesHolesSlowly(loop), true)
  assert.equal(punchesHolesSlowly('/proc'), false)
})
