import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newKeys } from '../sim/keys.ts'
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
    store: createSnapshotStore(dir, newKeys()),
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

test('a snapshot that could not be written leaves nothing', async () => {
  await using world = await setup()
  await assert.rejects(
    world.store.add(snapshot, () => Promise.reject(new Error('full'))),
    { message: 'full' },
  )
  assert.deepEqual(await readdir(world.dir), [])
})

test('a sweep removes what was being written or removed, and keeps what cannot be read', async () => {
  await using world = await setup()
  const { dir, store } = world
  for (const snapshotId of ['s1', 's2', 's3', 's4']) {
    await store.add({ ...snapshot, snapshotId }, async ({ disk }) => writeFile(disk, ''))
  }
  await mkdir(join(dir, '.half'))
  await writeFile(join(dir, 's2/snapshot.json'), '{"snapshotId":"s2"}')
  await rm(join(dir, 's3/snapshot.json'))
  await cp(join(dir, 's1/snapshot.json'), join(dir, 's4/snapshot.json'))
  await store.sweep()
  assert.deepEqual(await readdir(dir), ['s1', 's2', 's3', 's4'])
  assert.deepEqual(await store.list(), [snapshot])
  assert.deepEqual(
    (await store.listQuarantined()).map(({ kind, path }) => [kind, path]),
    ['s2', 's3', 's4'].map((name) => ['snapshot', join(dir, name)]),
  )
  await assert.rejects(store.find('s2'), { reason: 'record_unreadable' })
  assert.equal(await store.find('s9'), undefined)
})

test('a temporary snapshot is like any other until it is removed, and the next start removes it', async () => {
  await using world = await setup()
  const { dir, store } = world
  const write = ({ disk }: { readonly disk: string }) => writeFile(disk, Buffer.alloc(8192, 1))
  await store.addTemporary(snapshot, write)
  assert.deepEqual([await store.find('s1'), await store.list()], [snapshot, [snapshot]])
  assert.ok((await store.sizeBytes('s1')) >= 8192)
  assert.ok((await readFile(store.place('s1').disk)).length === 8192)
  await store.remove('s1')
  assert.deepEqual([await store.find('s1'), await readdir(dir)], [undefined, []])

  await store.addTemporary(snapshot, write)
  const next = createSnapshotStore(dir, newKeys())
  assert.deepEqual([await next.find('s1'), await next.list()], [undefined, []])
  await next.sweep()
  assert.deepEqual([await readdir(dir), await next.listQuarantined()], [[], []])
})

test('a temporary snapshot that could not be written leaves nothing', async () => {
  await using world = await setup()
  const { dir, store } = world
  await assert.rejects(
    store.addTemporary(snapshot, () => Promise.reject(new Error('full'))),
    { message: 'full' },
  )
  assert.deepEqual([await readdir(dir), await store.find('s1')], [[], undefined])
})
