/** Content that may be evicted: only what the store has whole, under the very name of the local files. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from '@atoll/objects/bundles'
import { createMemoryStore } from '@atoll/objects/testing/memory-store'
import { toInstallation } from '../../domain/host/installation.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Snapshot } from '../../domain/sandboxes/snapshot.ts'
import { createRecordStore } from '../records.ts'
import { createSnapshotStore } from '../snapshots.ts'
import { openLinkedFolders } from './linked-folders.ts'
import { openMarks } from './marks.ts'
import { createObjectSandboxes } from './object-sandboxes.ts'
import { createObjectSnapshots } from './object-snapshots.ts'
import { openTransfers } from './transfers.ts'

const never = new AbortController().signal
const makings = {
  ...{ templateId: 'base', cpuCount: 1, memoryMb: 128, diskSizeMb: 16, layer: 'l' },
  ...{ envd: 'e', initToken: 'secret', memory: 'release', runtime: 'gvisor' as const },
}
const paused: PausedSandbox = {
  ...makings,
  ...{ cellId: 'c1', phase: 'paused', disk: 'disk.img', keptGeneration: 2, keptId: 'k' },
  owner: { sandboxId: 'i1', generation: 2, envVars: {} },
}
const snapshot: Snapshot = { ...makings, snapshotId: 's1', envVars: {} }

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-stored-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const store = createMemoryStore()
  const ring = createKeyRing([newKey()], async () => {})
  const bundles = createBundles(store, ring)
  const marks = await openMarks(join(dir, 'marks'))
  const links = await openLinkedFolders(join(dir, 'links'))
  const reserveSpace = () => ({ [Symbol.dispose]() {} })
  const transfers = await openTransfers({ dir: join(dir, 'uploads'), bundles, reserveSpace })
  const state = { hasLayers: true }
  const needs = {
    upload: async () => ({ envd: 'e', cpu: { architecture: 'a', features: [] } }),
    fetch: async () => 'e',
    areStored: async () => state.hasLayers,
  }
  const shared = { transfers, bundles, marks, needs, links }
  const records = createRecordStore(toInstallation(dir), ring)
  const snapshots = createSnapshotStore(join(dir, 'snapshots'), ring)
  const sandboxes = createObjectSandboxes({ ...shared, records, nodeId: 'n1' })
  const objects = createObjectSnapshots({ ...shared, snapshots })
  const write = async ({ disk, memoryDir }: { disk: string; memoryDir: string }) => {
    await mkdir(memoryDir, { recursive: true })
    await writeFile(disk, 'disk')
    await writeFile(join(memoryDir, 'pages'), 'memory')
  }
  const cell = { disk: join(dir, 'cell/disk.img'), memoryDir: join(dir, 'cell/memory') }
  await write(cell)
  await snapshots.add(snapshot, write)
  return {
    ...{ store, marks, state, sandboxes, snapshots, objects, records },
    upload: () =>
      sandboxes.upload(
        paused,
        { writeDisk: async () => {}, link: () => links.link(cell), isCurrent: () => true },
        never,
      ),
  }
}

test('a paused sandbox is stored if the store has all of this very content', async (t) => {
  const { store, state, sandboxes, upload } = await setup(t)
  assert.equal(await sandboxes.isStored(paused, never), false)
  await upload()
  assert.equal(await sandboxes.isStored(paused, never), true)
  const { keptId: _id, ...withoutId } = paused
  for (const other of [
    { ...paused, keptGeneration: 3 },
    { ...paused, keptId: 'other' },
    { ...paused, layer: 'other' },
    withoutId,
  ]) {
    assert.equal(await sandboxes.isStored(other, never), false)
  }
  state.hasLayers = false
  assert.equal(await sandboxes.isStored(paused, never), false)
  state.hasLayers = true
  store.setDown(true)
  await assert.rejects(sandboxes.isStored(paused, never), { reason: 'objects_unavailable' })
  store.setDown(false)
  store.objects.set('sandboxes/i1/2.k/manifest', Buffer.from('damaged'))
  await assert.rejects(sandboxes.isStored(paused, never))
  assert.equal(sandboxes.isDurable(paused), true)
})

test('a sandbox whose objects are gone counts as not uploaded, so that it is uploaded again', async (t) => {
  const { store, sandboxes, upload } = await setup(t)
  await upload()
  const part = [...store.objects.keys()].find((key) => key.endsWith('.memory')) ?? ''
  store.objects.delete(part)
  assert.equal(sandboxes.isDurable(paused), true)
  assert.equal(await sandboxes.isStored(paused, never), false)
  assert.equal(sandboxes.isDurable(paused), false)
  await upload()
  assert.equal(await sandboxes.isStored(paused, never), true)
})

test('a snapshot is stored if the store has all of it, and is uploaded again if not', async (t) => {
  const { store, marks, state, objects } = await setup(t)
  await objects.upload(snapshot, never)
  assert.equal(await objects.isStored(snapshot, never), true)
  assert.equal(await objects.isStored({ ...snapshot, layer: 'other' }, never), false)
  state.hasLayers = false
  assert.equal(await objects.isStored(snapshot, never), false)
  state.hasLayers = true
  assert.equal(marks.has('snapshots', 's1'), true)
  store.objects.delete('snapshots/s1/manifest')
  assert.equal(await objects.isStored(snapshot, never), false)
  assert.equal(marks.has('snapshots', 's1'), false)
})

test('a fetch of an evicted snapshot takes back the note about its eviction', async (t) => {
  const { marks, snapshots, objects } = await setup(t)
  await objects.upload(snapshot, never)
  await marks.add('evicted-snapshots', 's1')
  await snapshots.remove('s1')
  await objects.fetch('s1')
  assert.equal((await snapshots.find('s1'))?.layer, 'l')
  assert.deepEqual(marks.list('evicted-snapshots'), [])
})

test('a fetched sandbox and the record of its eviction are both read after a crash', async (t) => {
  const { records, sandboxes, upload } = await setup(t)
  await upload()
  await records.create({ ...paused, cellId: 'cevicted', phase: 'evicted' })
  const request = { sandboxId: 'i1', keptGeneration: 2, keptId: 'k', generation: 3, boot: false }
  const fetched = await sandboxes.fetch(request)
  const phases = new Map(
    (await records.list()).map(({ cellId, record }) => [cellId, record?.phase]),
  )
  assert.deepEqual([phases.get('cevicted'), phases.get(fetched.cellId)], ['evicted', 'paused'])
})
