import assert from 'node:assert/strict'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { z } from 'zod'
import { cellDir, snapshotsDir, toInstallation } from '../domain/host/installation.ts'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { Snapshot } from '../domain/sandboxes/snapshot.ts'
import { newKeys } from '../sim/keys.ts'
import { noKeys } from './private-values.ts'
import { encodeRecord } from './record-file.ts'
import { createRecordStore } from './records.ts'
import { createSnapshotStore } from './snapshots.ts'

const parts = {
  templateId: 'base',
  cpuCount: 1,
  memoryMb: 256,
  diskSizeMb: 64,
  runtime: 'gvisor',
  layer: 'l1',
  envd: 'e1',
  initToken: 't',
} as const
const authority = { certificate: 'public', key: 'private-1' }
const cell: CellRecord = {
  ...{ ...parts, cellId: 'c1', phase: 'running', disk: 'disk.img', slotNumber: 3 },
  owner: {
    sandboxId: 'i1',
    envVars: {},
    authority,
    network: {
      allowOut: [],
      denyOut: [],
      proxy: { address: 'proxy:1080', username: 'me', password: 'private-2' },
      transforms: {
        domains: [{ pattern: 'a.example', headers: { 'X-Key': 'private-3' } }],
        authority,
      },
    },
  },
}
const snapshot: Snapshot = { ...parts, snapshotId: 's1', envVars: {}, authority }

async function setup() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-private-'))
  const installation = toInstallation(folder.path)
  const keys = newKeys()
  const open = (ring = keys) => ({
    cells: createRecordStore(installation, ring),
    snapshots: createSnapshotStore(snapshotsDir(installation), ring),
  })
  const files = {
    cell: join(cellDir(installation, 'c1'), 'cell.json'),
    snapshot: join(snapshotsDir(installation), 's1', 'snapshot.json'),
  }
  const texts = () => Promise.all(Object.values(files).map((path) => readFile(path, 'utf8')))
  const { cells, snapshots } = open()
  await cells.create(cell)
  await snapshots.add(snapshot, async () => {})
  return { keys, open, files, texts, [Symbol.asyncDispose]: () => folder.remove() }
}

test('private values are sealed in the files, and open in what is read', async () => {
  await using world = await setup()
  for (const text of await world.texts()) {
    assert.match(text, /"version":2,/)
    assert.ok(!text.includes('private-'), text)
  }
  const { cells, snapshots } = world.open()
  assert.deepEqual((await cells.list())[0]?.record, cell)
  assert.deepEqual(await snapshots.find('s1'), snapshot)
})

test('a record without private values keeps the version that older releases read', async () => {
  await using world = await setup()
  const { owner: _, ...free } = cell
  await world.open().cells.update(free)
  assert.match(await readFile(world.files.cell, 'utf8'), /"version":1,/)
})

test('without the key, records are quarantined with the ID of the key, and stay as they are', async () => {
  await using world = await setup()
  const before = await world.texts()
  const { cells, snapshots } = world.open(newKeys())
  const [entry] = await cells.list()
  assert.equal(entry?.record, undefined)
  assert.equal(entry?.quarantined?.sandboxId, 'i1')
  assert.equal(entry?.quarantined?.slotNumber, 3)
  assert.ok(entry?.quarantined?.reason.includes(world.keys.currentId))
  await assert.rejects(snapshots.find('s1'), /kept/)
  assert.deepEqual(await cells.reseal(), { resealed: 0, unreadable: 1 })
  assert.deepEqual(await snapshots.reseal(), { resealed: 0, unreadable: 1 })
  assert.deepEqual(await world.texts(), before)
})

test('a sealed value of another record is not accepted', async () => {
  await using world = await setup()
  const other = { ...snapshot, snapshotId: 's2' }
  const { snapshots } = world.open()
  await snapshots.add(other, async () => {})
  const stolen = JSON.parse(await readFile(world.files.snapshot, 'utf8')).authority
  const target = world.files.snapshot.replace('/s1/', '/s2/')
  const { version: _v, checksum: _c, ...rest } = JSON.parse(await readFile(target, 'utf8'))
  await writeFile(target, JSON.stringify({ ...rest, authority: stolen }))
  await assert.rejects(snapshots.find('s2'), /kept/)
})

test('records from before encryption are read, and sealed by the next pass', async () => {
  await using world = await setup()
  const old = { schema: z.any(), upgrades: [] }
  await writeFile(world.files.cell, encodeRecord(cell, old))
  await writeFile(world.files.snapshot, encodeRecord(snapshot, old))
  const { cells, snapshots } = world.open()
  assert.deepEqual((await cells.list())[0]?.record, cell)
  assert.deepEqual(await cells.reseal(), { resealed: 1, unreadable: 0 })
  assert.deepEqual(await snapshots.reseal(), { resealed: 1, unreadable: 0 })
  for (const text of await world.texts()) assert.ok(!text.includes('private-'), text)
  assert.deepEqual((await cells.list())[0]?.record, cell)
  assert.deepEqual(await cells.reseal(), { resealed: 0, unreadable: 0 })
})

test('a rotation leaves the folder of a cell that is being removed alone', async () => {
  await using world = await setup()
  const { cells } = world.open()
  const removeFiles = await cells.retire(cell.cellId)
  await world.keys.add()
  assert.deepEqual(await cells.reseal(), { resealed: 0, unreadable: 0 })
  await removeFiles()
  assert.deepEqual(await cells.list(), [])
})

test('a record whose version was removed to edit it by hand is opened', async () => {
  await using world = await setup()
  const { version: _v, checksum: _c, ...rest } = JSON.parse((await world.texts())[0] ?? '')
  await writeFile(world.files.cell, JSON.stringify({ ...rest, memoryMb: 512 }))
  assert.deepEqual((await world.open().cells.list())[0]?.record, { ...cell, memoryMb: 512 })
})

test('after a rotation every record has the new key, also one that is written meanwhile', async () => {
  await using world = await setup()
  const { cells, snapshots } = world.open()
  const added = await world.keys.add()
  const updates = Array.from({ length: 20 }, (_, at) => cells.update({ ...cell, slotNumber: at }))
  const passes = [cells.reseal(), snapshots.reseal(), cells.reseal()]
  await Promise.all([...updates, ...passes])
  for (const text of await world.texts()) {
    const used = text.match(/(?<=atoll\.sealed\.v1\.)[0-9a-f]{16}/g) ?? []
    assert.deepEqual([...new Set(used)], [added])
  }
  assert.deepEqual((await cells.list())[0]?.record, { ...cell, slotNumber: 19 })
})

test('commands without keys see records, and cannot write private values', async () => {
  await using world = await setup()
  const before = await world.texts()
  const installation = toInstallation(join(world.files.cell, '../../..'))
  const store = createRecordStore(installation, noKeys)
  const [entry] = await store.list()
  assert.equal(entry?.record?.owner?.sandboxId, 'i1')
  await assert.rejects(store.update(entry?.record ?? assert.fail()), /without the encryption keys/)
  assert.deepEqual(await world.texts(), before)
})
