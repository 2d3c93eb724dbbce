import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSnapshotStore } from './snapshots.ts'

const snapshot = {
  snapshotId: 's1',
  templateId: 'base',
  cpuCount: 1,
  memoryMb: 256,
  diskSizeMb: 64,
  runtime: 'gvisor',
  layer: 'l1',
  envd: 'e1',
  initToken: 't',
  envVars: { A: 'b' },
  memory: 'runsc 1',
} as const

async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-snapshots-'))
  return {
    dir,
    store: createSnapshotStore(dir),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('a snapshot is found once it is whole, with what it takes, until it is removed', async () => {
  await using world = await setup()
  const { store } = world
  await store.add(snapshot, async ({ disk, memoryDir }) => {
    assert.equal(await store.find('s1'), undefined)
    await mkdir(memoryDir)
    await writeFile(disk, Buffer.alloc(8192, 1))
    await writeFile(join(memoryDir, 'pages'), Buffer.alloc(4096, 1))
  })
  assert.deepEqual(await store.find('s1'), snapshot)
  assert.deepEqual(await store.list(), [snapshot])
  assert.ok((await store.sizeBytes('s1')) >= 12_288)
  await store.remove('s1')
  await store.remove('s1')
  assert.deepEqual([await store.list(), await readdir(world.dir)], [[], []])
})

test('one that could not be written leaves nothing', async () => {
  await using world = await setup()
  await assert.rejects(
    world.store.add(snapshot, () => Promise.reject(new Error('full'))),
    { message: 'full' },
  )
  assert.deepEqual(await readdir(world.dir), [])
})

test('what a dead predecessor left half written is swept away, and nothing else', async () => {
  await using world = await setup()
  await world.store.add(snapshot, async ({ disk }) => writeFile(disk, ''))
  await mkdir(join(world.dir, '.half'))
  await mkdir(join(world.dir, 'torn'))
  await world.store.sweep()
  assert.deepEqual(await readdir(world.dir), ['s1'])
})

test('one that cannot be read at this moment is not swept away', async () => {
  await using world = await setup()
  await world.store.add(snapshot, async ({ disk }) => writeFile(disk, ''))
  await rm(join(world.dir, 's1/snapshot.json'))
  await mkdir(join(world.dir, 's1/snapshot.json'))
  await assert.rejects(world.store.sweep(), { code: 'EISDIR' })
  assert.deepEqual(await readdir(world.dir), ['s1'])
})
