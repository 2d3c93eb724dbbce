/** Ways to lose or corrupt data by uploads and downloads, each tried on real files and a store in memory. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from '@atoll/objects/bundles'
import { createMemoryStore } from '@atoll/objects/testing/memory-store'
import { toInstallation } from '../../domain/host/installation.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { createRecordStore } from '../records.ts'
import { openDeletions } from './deletions.ts'
import { openLinkedFolders } from './linked-folders.ts'
import { openMarks } from './marks.ts'
import { createObjectSandboxes } from './object-sandboxes.ts'
import { openTransfers } from './transfers.ts'

const noRoomNeeded = () => ({ [Symbol.dispose]() {} })
const noCpu = { architecture: 'a', features: [] }
const never = new AbortController().signal
const fetchSecond = { sandboxId: 'i1', keptGeneration: 2, generation: 3, boot: false }

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-objects-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const store = createMemoryStore()
  const ring = createKeyRing([newKey()], async () => {})
  const bundles = createBundles(store, ring)
  const marks = await openMarks(join(dir, 'marks'))
  const links = await openLinkedFolders(join(dir, 'links'))
  const uploads = { dir: join(dir, 'uploads'), bundles, reserveSpace: noRoomNeeded }
  const transfers = await openTransfers(uploads)
  const records = createRecordStore(toInstallation(dir), ring)
  const needs = {
    upload: async () => ({ envd: 'e', cpu: noCpu }),
    fetch: async () => 'e',
    areStored: async () => true,
  }
  const sandboxes = createObjectSandboxes({
    ...{ transfers, bundles, marks, needs, records, nodeId: 'n1' },
  })
  const cell = join(dir, 'cell')
  await mkdir(join(cell, 'memory'), { recursive: true })
  await writeFile(join(cell, 'disk.img'), 'disk of 2')
  await writeFile(join(cell, 'memory/pages'), 'memory of 2')
  const source = { disk: join(cell, 'disk.img'), memoryDir: join(cell, 'memory') }
  const uploadOf = (record: PausedSandbox, isCurrent = () => true) =>
    sandboxes.upload(
      record,
      { writeDisk: async () => {}, link: () => links.link(source), isCurrent },
      never,
    )
  const upload = (isCurrent = () => true) => uploadOf(paused, isCurrent)
  const cells = async () => (await records.list()).flatMap(({ record }) => record ?? [])
  return {
    ...{ dir, store, bundles, marks, transfers, uploads, records, sandboxes, links },
    ...{ cell, upload, uploadOf, cells },
  }
}

const paused: PausedSandbox = {
  ...{ templateId: 'base', cpuCount: 1, memoryMb: 128, diskSizeMb: 16, runtime: 'gvisor' },
  ...{
    layer: 'l',
    envd: 'e',
    initToken: 'secret',
    cellId: 'c1',
    phase: 'paused',
    disk: 'disk.img',
  },
  ...{ memory: 'release', keptGeneration: 2 },
  owner: { sandboxId: 'i1', generation: 2, envVars: {} },
}

test('an upload reads the folder as it was when it began, though a resume and a kill change it', async (t) => {
  const { dir, store, cell, upload, sandboxes, cells } = await setup(t)
  store.onChange = async (operation, key) => {
    if (operation !== 'upload' || !key.endsWith('.disk')) return
    // A resume replaces files, and a kill removes the folder.
    await writeFile(join(cell, 'memory/next'), 'memory of 3')
    await rename(join(cell, 'memory/next'), join(cell, 'memory/pages'))
    await rm(cell, { recursive: true })
  }
  await upload()
  store.onChange = () => {}
  const fetched = await sandboxes.fetch(fetchSecond)
  const folder = join(dir, 'cells', fetched.cellId)
  assert.equal(await readFile(join(folder, 'disk.img'), 'utf8'), 'disk of 2')
  assert.equal(await readFile(join(folder, 'memory/pages'), 'utf8'), 'memory of 2')
  assert.deepEqual((await cells())[0]?.owner, { ...paused.owner, generation: 3 })
  assert.deepEqual(await readdir(join(dir, 'links')), [])
})

test('a disk whose pause kept no memory is read only once it is written', async (t) => {
  const { store, sandboxes, links, cell } = await setup(t)
  const { memory: _memory, ...withoutMemory } = paused
  const steps: string[] = []
  const link = () => {
    steps.push('link')
    return links.link({ disk: join(cell, 'disk.img'), memoryDir: undefined })
  }
  const work = { link, isCurrent: () => true }
  const writeDisk = async () => void steps.push('disk')
  await sandboxes.upload(withoutMemory, { ...work, writeDisk }, never)
  assert.deepEqual(steps, ['disk', 'link'])
  const objects = store.objects.size
  const fails = async () => assert.fail('still mounted')
  const next = { ...withoutMemory, keptGeneration: 3 }
  await assert.rejects(sandboxes.upload(next, { ...work, writeDisk: fails }, never))
  assert.equal(store.objects.size, objects)
})

test('no manifest of generation 2 is written once generation 3 has started', async (t) => {
  const { store, sandboxes, upload } = await setup(t)
  await upload(() => false)
  assert.equal(store.objects.size, 0)
  assert.equal(sandboxes.isDurable(paused), false)
})

test('a durable mark counts for its own generation only', async (t) => {
  const { sandboxes, upload } = await setup(t)
  await upload()
  assert.equal(sandboxes.isDurable(paused), true)
  assert.equal(sandboxes.isDurable({ ...paused, keptGeneration: 3 }), false)
  const afterFailedResume = { ...paused, owner: { ...paused.owner, generation: 7 } }
  assert.equal(sandboxes.isDurable(afterFailedResume), true)
})

test('a generation that repeats after a restore is uploaded again, and each content is fetched by its ID', async (t) => {
  const { dir, cell, uploadOf, sandboxes } = await setup(t)
  const [before, after] = [
    { ...paused, keptId: 'before' },
    { ...paused, keptId: 'after' },
  ]
  await uploadOf(before)
  await writeFile(join(cell, 'disk.img'), 'disk after the restore')
  assert.equal(sandboxes.isDurable(after), false)
  await uploadOf(after)
  assert.equal(sandboxes.isDurable(after), true)
  const diskOf = async (keptId: string) => {
    const { cellId } = await sandboxes.fetch({ ...fetchSecond, keptId })
    return readFile(join(dir, 'cells', cellId, 'disk.img'), 'utf8')
  }
  assert.deepEqual(
    [await diskOf('before'), await diskOf('after')],
    ['disk of 2', 'disk after the restore'],
  )
  for (const unknown of [fetchSecond, { ...fetchSecond, keptId: 'other' }]) {
    await assert.rejects(sandboxes.fetch(unknown), { reason: 'object_missing' })
  }
})

test('a later pause removes the objects of all earlier ones, whatever their IDs', async (t) => {
  const { store, uploadOf, marks } = await setup(t)
  await uploadOf(paused)
  await uploadOf({ ...paused, keptId: 'a' })
  await uploadOf({ ...paused, keptId: 'b', keptGeneration: 10 })
  const folders = [...store.objects.keys()].map((key) => key.split('/').slice(0, 3).join('/'))
  assert.deepEqual([...new Set(folders)], ['sandboxes/i1/10.b'])
  assert.deepEqual(marks.list('sandboxes'), ['i1.10.b'])
})

test('a download that fails its check leaves no cell', async (t) => {
  const { dir, store, upload, sandboxes, cells } = await setup(t)
  await upload()
  for (const [key, body] of store.objects) {
    if (key.endsWith('.memory')) store.objects.set(key, Buffer.concat([body, Buffer.alloc(1)]))
  }
  await assert.rejects(sandboxes.fetch(fetchSecond), { reason: 'object_damaged' })
  assert.deepEqual([await cells(), await readdir(join(dir, 'cells'))], [[], []])
})

test('a download that a crash cut off is never adopted', async (t) => {
  const { records, cells } = await setup(t)
  const reached = Promise.withResolvers<void>()
  // Never ends, as after a crash: all that was written so far is there.
  void records.adopt({ ...paused, cellId: 'c2' }, async (folder) => {
    await writeFile(join(folder, 'disk.img'), 'half')
    reached.resolve()
    await new Promise(() => {})
  })
  await reached.promise
  const entries = await records.list()
  assert.deepEqual([entries.length, await cells()], [1, []])
  assert.equal(entries[0]?.quarantined, undefined)
  await records.remove(entries[0]?.cellId ?? '')
  assert.deepEqual(await records.list(), [])
})

test('what an interrupted upload left is removed after a restart, and a finished bundle is not', async (t) => {
  const { dir, store, bundles, upload, uploads } = await setup(t)
  store.onChange = (operation, key) => {
    if (operation === 'upload' && key.endsWith('.memory')) store.setDown(true)
  }
  await assert.rejects(upload(), { reason: 'objects_unavailable' })
  store.onChange = () => {}
  store.setDown(false)
  assert.ok(store.objects.size > 0, 'the store kept a part')
  await (await openTransfers(uploads)).cleanUp(never)
  assert.equal(store.objects.size, 0)
  await upload()
  await (await openTransfers(uploads)).cleanUp(never)
  assert.ok(await bundles.find('sandboxes/i1/2'))
  assert.deepEqual(await readdir(join(dir, 'uploads')), [])
})

test('a note of an upload that cannot be read stays, and one that was never finished goes', async (t) => {
  const { uploads } = await setup(t)
  await writeFile(join(uploads.dir, 'a1.json'), '{"path"')
  await writeFile(join(uploads.dir, 'a2.json.0f.tmp'), '{"path":"sandboxes/i1/2"}')
  const transfers = await openTransfers(uploads)
  assert.deepEqual(await readdir(uploads.dir), ['a1.json'])
  assert.equal(transfers.isPending('sandboxes/'), false)
})

test('a deletion waits for the store, also through a restart, and spares other sandboxes', async (t) => {
  const { dir, store, bundles, upload } = await setup(t)
  await upload()
  store.objects.set('sandboxes/i11/2/manifest', Buffer.from('of another sandbox'))
  const errors: unknown[] = []
  const open = () =>
    openDeletions({ dir: join(dir, 'deletions'), bundles, onError: (error) => errors.push(error) })
  await (await open()).request('sandboxes/i1/')
  store.setDown(true)
  await (await open()).run(never)
  assert.equal(errors.length, 1)
  store.setDown(false)
  await (await open()).run(never)
  assert.deepEqual([...store.objects.keys()], ['sandboxes/i11/2/manifest'])
  assert.deepEqual(await readdir(join(dir, 'deletions')), [])
})

test('a deletion up to a generation spares newer content, and does not replace a deletion of all', async (t) => {
  const { dir, store, bundles, uploadOf } = await setup(t)
  const open = () => openDeletions({ dir: join(dir, 'd'), bundles, onError: assert.fail })
  const upload = () => uploadOf({ ...paused, keptId: 'a' })
  const newer = { path: 'sandboxes/i1/10.b', attempt: 'one', facts: {}, parts: [] }
  await upload()
  await bundles.write(newer)
  await (await open()).request('sandboxes/i1/', 9)
  await (await open()).run(never)
  assert.deepEqual([...store.objects.keys()], ['sandboxes/i1/10.b/manifest'])
  const deletions = await open()
  await deletions.request('sandboxes/i1/')
  await deletions.request('sandboxes/i1/', 9)
  await deletions.run(never)
  assert.equal(store.objects.size, 0)
})

test('deletions accept no prefix that reaches more than one thing', async (t) => {
  const { dir, bundles } = await setup(t)
  const deletions = await openDeletions({ dir: join(dir, 'd'), bundles, onError: assert.fail })
  for (const prefix of ['', '/', 'sandboxes/', 'sandboxes//', 'layers/x/', 'sandboxes/../x/']) {
    await assert.rejects(deletions.request(prefix))
  }
})

test('an upload is pending until its mark is written, also after a crash', async (t) => {
  const { store, transfers, marks, sandboxes, upload, uploads } = await setup(t)
  const seen: boolean[] = []
  store.onChange = () => void seen.push(transfers.isPending('sandboxes/i1/'))
  await upload()
  assert.deepEqual([...new Set(seen)], [true])
  assert.equal(transfers.isPending('sandboxes/i1/'), false)

  // A crash after the manifest and before the mark leaves a note about the upload.
  const { attempt } = await transfers.find('sandboxes/i1/2')
  await marks.removeWhere('sandboxes', () => true)
  await writeFile(join(uploads.dir, `${attempt}.json`), '{"path":"sandboxes/i1/2"}')
  const restarted = await openTransfers(uploads)
  assert.deepEqual(
    ['sandboxes/i1/', 'sandboxes/i11/'].map((prefix) => restarted.isPending(prefix)),
    [true, false],
  )
  await restarted.cleanUp(never, sandboxes.noteStored)
  assert.equal(restarted.isPending('sandboxes/i1/'), false)
  assert.equal(sandboxes.isDurable(paused), true)
})

test('content of another node under the same name never counts as uploaded', async (t) => {
  const { bundles, upload, sandboxes, transfers } = await setup(t)
  const facts = { origin: 'n2', record: paused, needs: { envd: 'e', cpu: noCpu } }
  await bundles.write({ path: 'sandboxes/i1/2', attempt: 'other', facts, parts: [] })
  await assert.rejects(upload(), { reason: 'object_conflict' })
  assert.equal(sandboxes.isDurable(paused), false)
  await transfers.cleanUp(never, sandboxes.noteStored)
  assert.equal(sandboxes.isDurable(paused), false)
})
