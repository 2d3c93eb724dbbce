import assert from 'node:assert/strict'
import { mkdir, mkdtemp, open, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
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
    point: (id: string) => join(disksDir, id),
    write: (id: string, sizeMb: number) =>
      writeFile(join(disksDir, id, `file-${sizeMb}`), Buffer.alloc(sizeMb * mib, 1)),
    async [Symbol.asyncDispose]() {
      for (const id of ['c1', 'c2']) await run('umount', [join(disksDir, id)])
      await rm(dir, { recursive: true })
    },
  }
}

test('a disk at its limit says so at the write, to root too, and df inside shows it', async () => {
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

test('what is dirty counts as used before the host has stored it', async () => {
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
