/** Asks a store in memory what it has of a node that is gone, from a node that has nothing of it. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from '@atoll/objects/bundles'
import type { Bundles } from '@atoll/objects/bundles'
import { createMemoryStore } from '@atoll/objects/testing/memory-store'
import { toInstallation } from '../../domain/host/installation.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Snapshot } from '../../domain/sandboxes/snapshot.ts'
import type { BuiltTemplate } from '../built-templates.ts'
import { createRecordStore } from '../records.ts'
import { createSnapshotStore } from '../snapshots.ts'
import { createFindStored } from './find-stored.ts'
import { openLinkedFolders } from './linked-folders.ts'
import { openMarks } from './marks.ts'
import { createObjectSandboxes } from './object-sandboxes.ts'
import { createObjectSnapshots } from './object-snapshots.ts'
import { createObjectTemplates } from './object-templates.ts'
import { openTransfers } from './transfers.ts'

const never = new AbortController().signal
const base = `sha256-${'0'.repeat(64)}`
const layer = `s${'a'.repeat(12)}`
const envd = `${'b'.repeat(8)}.${'c'.repeat(64)}`
const makings = {
  ...{ templateId: 'base', cpuCount: 1, memoryMb: 128, diskSizeMb: 16, layer },
  ...{ envd: 'e', initToken: 'secret', memory: 'release', runtime: 'gvisor' as const },
}
const paused: PausedSandbox = {
  ...makings,
  ...{ cellId: 'c1', phase: 'paused', disk: 'disk.img', keptGeneration: 2, keptId: 'k' },
  owner: { sandboxId: 'i1', generation: 2, envVars: {} },
}
const snapshot: Snapshot = { ...makings, snapshotId: 's1', envVars: {} }
const template: BuiltTemplate = { templateId: 't1', layer, setup: defaultSetup }
const content = { sandboxId: 'i1', keptGeneration: 2, keptId: 'k' }
const all = { contents: [content], snapshotIds: ['s1'], templateIds: ['t1'] }
const nothing = { contents: [], snapshotIds: [], templateIds: [] }

/** A node with its own folder. */
async function openNode(t: TestContext, bundles: Bundles, id: string) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-found-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const ring = createKeyRing([newKey()], async () => {})
  const marks = await openMarks(join(dir, 'marks'))
  const links = await openLinkedFolders(join(dir, 'links'))
  const reserveSpace = () => ({ [Symbol.dispose]() {} })
  const transfers = await openTransfers({ dir: join(dir, 'uploads'), bundles, reserveSpace })
  const needs = {
    upload: async () => ({ envd, cpu: { architecture: 'a', features: [] } }),
    fetch: () => assert.fail('nothing is fetched'),
    areStored: () => assert.fail('the layers are not on this node'),
  }
  const layers = { ...needs, upload: async () => {}, isStored: needs.areStored }
  const shared = { transfers, bundles, marks, needs, links, layers }
  const records = createRecordStore(toInstallation(dir), ring)
  const snapshots = createSnapshotStore(join(dir, 'snapshots'), ring)
  const templates = { find: () => template, findReadable: () => template, add: async () => {} }
  const objects = {
    sandboxes: createObjectSandboxes({ ...shared, records, nodeId: id }),
    snapshots: createObjectSnapshots({ ...shared, snapshots }),
    templates: createObjectTemplates({ ...shared, templates }),
  }
  return { dir, marks, links, objects, files: snapshots }
}

/** Uploads all from a node that is then gone. Returns what another node finds. */
async function setUp(t: TestContext) {
  const store = createMemoryStore()
  const ring = createKeyRing([newKey()], async () => {})
  const bundles = createBundles(store, ring)
  const gone = await openNode(t, bundles, 'gone')
  const cell = { disk: join(gone.dir, 'cell/disk.img'), memoryDir: join(gone.dir, 'cell/memory') }
  await write(cell)
  await gone.files.add(snapshot, write)
  const link = () => gone.links.link(cell)
  const work = { writeDisk: async () => {}, link, isCurrent: () => true }
  await gone.objects.sandboxes.upload(paused, work, never)
  await gone.objects.snapshots.upload(snapshot, never)
  await gone.objects.templates.upload(template, never)
  const put = (path: string, facts: unknown) => {
    const open = async function* () {
      yield Buffer.from('files')
    }
    const parts = [{ name: 'files', unpackedBytes: 5, open }]
    return bundles.write({ path, attempt: 'one', facts, parts })
  }
  await put(`layers/${base}`, { kind: 'base' })
  await put(`layers/${layer}`, { kind: 'step', below: base, key: 'k', sizeBytes: 5 })
  await put(`envd/${envd}`, {})
  const asked = await openNode(t, bundles, 'asked')
  const find = createFindStored({ bundles, ...asked.objects })
  return { store, put, marks: asked.marks, find: (wanted = all) => find(wanted, never) }
}

async function write({ disk, memoryDir }: { disk: string; memoryDir: string }): Promise<void> {
  await mkdir(memoryDir, { recursive: true })
  await writeFile(disk, 'disk')
  await writeFile(join(memoryDir, 'pages'), 'memory')
}

test('another node finds what the store has wholly, and only that, and notes nothing', async (t) => {
  const { store, marks, find } = await setUp(t)
  const objects = [...store.objects.keys()]
  assert.deepEqual(await find(), all)
  const others = {
    contents: [
      { ...content, keptId: 'other' },
      { ...content, keptGeneration: 3 },
      { ...content, sandboxId: 'i2' },
    ],
    ...{ snapshotIds: ['s2'], templateIds: ['t2'] },
  }
  assert.deepEqual(await find(others), nothing)
  for (const kind of ['sandboxes', 'snapshots', 'templates', 'layers', 'envd'] as const) {
    assert.deepEqual(marks.list(kind), [])
  }
  assert.deepEqual([...store.objects.keys()], objects)
})

test('a content that lacks a part, a manifest or something that it needs is not stored', async (t) => {
  const { store, find } = await setUp(t)
  const without = async (start: string, end: string) => {
    const keys = [...store.objects.keys()]
    const key = keys.find((one) => one.startsWith(start) && one.endsWith(end))
    const body = key !== undefined && store.objects.get(key)
    if (!body) return assert.fail(`no object ${start}…${end}`)
    store.objects.delete(key)
    const found = await find()
    store.objects.set(key, body)
    return found
  }
  const { contents, snapshotIds, templateIds } = all
  assert.deepEqual(await without('sandboxes/', '.memory'), { ...nothing, snapshotIds, templateIds })
  assert.deepEqual(await without('sandboxes/', '/manifest'), {
    ...{ ...nothing, snapshotIds, templateIds },
  })
  assert.deepEqual(await without('snapshots/', '.disk'), { ...nothing, contents, templateIds })
  assert.deepEqual(await without('templates/', '/manifest'), { ...nothing, contents, snapshotIds })
  assert.deepEqual(await without('envd/', '.files'), { ...nothing, templateIds })
  for (const name of [layer, base]) {
    for (const end of ['.files', '/manifest']) {
      assert.deepEqual(await without(`layers/${name}/`, end), nothing)
    }
  }
  assert.deepEqual(await find(), all)
})

test('an object that cannot be read, and a store that is down, are faults: neither says what is missing', async (t) => {
  const { store, find } = await setUp(t)
  const key = 'snapshots/s1/manifest'
  const body = store.objects.get(key) ?? assert.fail('no manifest')
  store.objects.set(key, Buffer.from('damaged'))
  await assert.rejects(find(), { reason: 'object_unreadable', message: /^Snapshot s1: / })
  store.objects.set(key, body)
  store.setDown(true)
  await assert.rejects(find(), { reason: 'objects_unavailable' })
})
