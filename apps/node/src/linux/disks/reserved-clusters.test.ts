import assert from 'node:assert/strict'
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { createMountedDisks } from './mounted-disks.ts'

/** Mounts an empty disk like the node does. */
async function mountDisk(sizeMb: number) {
  await using made = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'atoll-reserved-'))
  made.defer(() => rm(dir, { recursive: true }))
  const point = join(dir, 'disks/c1')
  await mkdir(point, { recursive: true })
  const image = join(dir, 'c1.img')
  await using file = await open(image, 'w')
  await file.truncate(sizeMb * 1024 ** 2)
  await run('mkfs.ext4', ['-q', '-F', '-m', '0', '-O', '^has_journal', image])
  await run('mount', ['-n', '-o', 'loop', image, point])
  made.defer(async () => void (await run('umount', [point])))
  const device = (await run('findmnt', ['--noheadings', '--output=SOURCE', point])).trim()
  const owned = made.move()
  return {
    disks: createMountedDisks({ dataDir: dir, disksDir: join(dir, 'disks') }),
    reserved: () => readFile(device.replace('/dev/', '/sys/fs/ext4/') + '/reserved_clusters'),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

for (const sizeMb of [100, 1200]) {
  test(`ext4 reserves 2 % of ${sizeMb} MiB, at most 4096 blocks, in reserved_clusters by default`, async () => {
    await using disk = await mountDisk(sizeMb)
    const usual = Number(await disk.reserved())
    assert.ok(usual > 0)
    const states = disk.disks.readDisks()
    disk.disks.limit(states, new Map([['c1', 0]]))
    assert.ok(Number(await disk.reserved()) > usual)
    disk.disks.limit(states, undefined)
    assert.equal(Number(await disk.reserved()), usual)
  })
}
