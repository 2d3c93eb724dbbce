import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { cellDir, memoryDir, snapshotsDir, toInstallation } from './domain/host/installation.ts'
import { takeInventory } from './inventory.ts'
import { noKeys } from './state/private-values.ts'
import { createRecordStore } from './state/records.ts'
import { createSnapshotStore } from './state/snapshots.ts'

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

test('an absent data directory has an empty inventory', async () => {
  await using dir = await temporaryFolder()
  const nothing = { count: 0, diskBytes: 0 }
  assert.deepEqual(await takeInventory(dir.path), {
    ready: {},
    paused: nothing,
    snapshots: nothing,
    quarantined: [],
  })
})

test('records of every kind that cannot be read are listed with their reason', async () => {
  await using dir = await temporaryFolder()
  const damaged = {
    sandbox: 'cells/c1/cell.json',
    snapshot: 'snapshots/s1/snapshot.json',
    template: 'templates/t1.json',
    layer: 'steps/s2.json',
  }
  for (const path of Object.values(damaged)) {
    await mkdir(dirname(join(dir.path, path)), { recursive: true })
    await writeFile(join(dir.path, path), '{"version":99}')
  }
  await mkdir(join(dir.path, 'steps/s2'))
  const { quarantined } = await takeInventory(dir.path)
  assert.deepEqual(
    quarantined.map(({ kind }) => kind),
    Object.keys(damaged),
  )
  for (const { kind, reason } of quarantined) {
    const newest = kind === 'sandbox' || kind === 'snapshot' ? 2 : 1
    assert.equal(reason, `it has format 99, and this release reads up to ${newest}`)
  }
})

test('sandboxes that are ready are counted, paused ones and snapshots measured', async () => {
  await using dir = await temporaryFolder()
  const installation = toInstallation(dir.path)
  const records = createRecordStore(installation, noKeys)
  const cells = { c1: 'ready', c2: 'ready', c3: 'running', c4: 'paused' } as const
  for (const [cellId, phase] of Object.entries(cells)) {
    await records.create({ ...parts, cellId, phase, disk: 'disk.img' })
    await writeFile(join(cellDir(installation, cellId), 'disk.img'), Buffer.alloc(1_000_000, 1))
  }
  // Sparse: a gigabyte long, but takes only the bytes written.
  await truncate(join(cellDir(installation, 'c4'), 'disk.img'), 1_000_000_000)
  await mkdir(memoryDir(installation, 'c4'))
  await writeFile(join(memoryDir(installation, 'c4'), 'pages.img'), Buffer.alloc(500_000, 1))
  const snapshot = { ...parts, snapshotId: 's1', envVars: {} }
  await createSnapshotStore(snapshotsDir(installation), noKeys).add(snapshot, (place) =>
    writeFile(place.disk, Buffer.alloc(200_000, 1)),
  )

  const { ready, paused, snapshots } = await takeInventory(dir.path)
  assert.deepEqual([ready, paused.count, snapshots.count], [{ base: 2 }, 1, 1])
  assertNear(paused.diskBytes, 1_500_000)
  assertNear(snapshots.diskBytes, 200_000)
})

/** Records and partial blocks add to the size. */
function assertNear(bytes: number, expected: number): void {
  assert.ok(bytes >= expected && bytes < expected + 100_000, `${bytes}, not about ${expected}`)
}

async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), 'atoll-inventory-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}
