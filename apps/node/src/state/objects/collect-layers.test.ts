/** Layers and builds of envd in the object store that nothing needs, on real files and a store in memory. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from '@atoll/objects/bundles'
import { createCondemned, graceMs } from '@atoll/objects/condemned'
import { createMemoryStore } from '@atoll/objects/testing/memory-store'
import { rememberClaims } from './claims.ts'
import { createLayerCollection } from './collect-layers.ts'
import { openMarks } from './marks.ts'
import { createNeededLayers } from './needed-layers.ts'
import { createObjectLayers } from './object-layers.ts'
import { openTransfers } from './transfers.ts'

const never = new AbortController().signal
const hourMs = 60 * 60 * 1000
const step = { kind: 'step', key: 'k', sizeBytes: 1 }

async function setUp() {
  const store = createMemoryStore()
  const bundles = createBundles(
    store,
    createKeyRing([newKey()], async () => {}),
  )
  const nowMs = () => store.clockMs
  const condemned = createCondemned({ store, bundles })
  const put = (path: string, facts: unknown) =>
    bundles.write({ path, attempt: 'one', facts, parts: [] })
  const open = () =>
    createLayerCollection({
      ...{ store, condemned, onError: assert.fail },
      needed: createNeededLayers(bundles),
      sweeps: [],
    })
  const stored = async () =>
    [...(await bundles.listPaths('layers/')), ...(await bundles.listPaths('envd/'))].toSorted()
  return {
    store,
    bundles,
    condemned,
    nowMs,
    put,
    open,
    stored,
    pass: (ms: number) => (store.clockMs += ms),
  }
}

type Put = Awaited<ReturnType<typeof setUp>>['put']

const base = `sha256-${'0'.repeat(64)}`
const [lower, upper, ofSnapshot, ofSandbox, oldLayer] = 'abcde'
  .split('')
  .map((letter) => `s${letter.repeat(12)}`)
const [envdA, envdB, oldEnvd] = 'abc'
  .split('')
  .map((digit) => `${digit.repeat(8)}.${digit.repeat(64)}`)

async function putAll(put: Put): Promise<void> {
  await put(`layers/${base}`, { kind: 'base' })
  await put(`layers/${lower}`, { ...step, below: base })
  await put(`layers/${upper}`, { ...step, below: lower })
  await put(`layers/${ofSnapshot}`, step)
  await put(`layers/${ofSandbox}`, step)
  await put(`layers/${oldLayer}`, { ...step, below: base })
  for (const envd of [envdA, envdB, oldEnvd]) await put(`envd/${envd}`, {})
  await put('templates/t1', { template: { layer: upper } })
  await put('snapshots/s1', { snapshot: { layer: ofSnapshot }, needs: { envd: envdA } })
  await put('sandboxes/i1/2.x', { record: { layer: ofSandbox }, needs: { envd: envdB } })
}

test('only layers and builds that nothing in the store needs are removed, after the grace time', async () => {
  const { store, put, open, stored, pass } = await setUp()
  await putAll(put)
  const all = await stored()
  const collection = open()
  await collection.run(never)
  pass(graceMs - hourMs)
  await collection.run(never)
  assert.deepEqual(await stored(), all)
  pass(hourMs)
  await collection.run(never)
  const removed = [`layers/${oldLayer}`, `envd/${oldEnvd}`]
  assert.deepEqual(
    await stored(),
    all.filter((path) => !removed.includes(path)),
  )
  assert.deepEqual(
    [...store.objects.keys()].filter((key) => key.endsWith('condemned')),
    [],
  )
})

test('objects of others in the same bucket are left alone', async () => {
  const { store, put, open, pass } = await setUp()
  await putAll(put)
  const others = [
    ...['layers/photos/1.png', 'envd/notes', 'layers/readme', 'layers/photos/condemned'],
    ...['collections/0/photos', 'collections/1969/list', 'collections/1969-01-01T00.photos'],
  ]
  for (const key of others) store.objects.set(key, Buffer.from('of others'))
  const collection = open()
  await collection.run(never)
  pass(graceMs)
  await collection.run(never)
  const left = others.filter((key) => store.objects.has(key))
  assert.deepEqual(left, others)
  assert.equal((await store.list('collections/')).length, 3 + 1)
})

test('layers stay while a manifest cannot be read, which may need any of them', async () => {
  const { store, put, open, stored, pass } = await setUp()
  await putAll(put)
  const all = await stored()
  const collection = open()
  await collection.run(never)
  store.objects.set('snapshots/s2/manifest', Buffer.from('sealed with another key'))
  pass(2 * graceMs)
  await assert.rejects(collection.run(never))
  assert.deepEqual(await stored(), all)
})

test('uploads continue while a manifest cannot be read: condemnations are taken back', async () => {
  const { store, condemned, put, open, pass } = await setUp()
  await putAll(put)
  const collection = open()
  await collection.run(never)
  store.objects.set('snapshots/s2/manifest', Buffer.from('sealed with another key'))
  pass(graceMs)
  await assert.rejects(condemned.claim(`layers/${oldLayer}`), { reason: 'object_expiring' })
  await assert.rejects(collection.run(never))
  for (const path of [`layers/${oldLayer}`, `envd/${oldEnvd}`]) {
    assert.equal(await condemned.claim(path), true, path)
  }
})

test('a pass that is stopped takes no condemnation back', async () => {
  const { store, put, open, pass } = await setUp()
  await putAll(put)
  const collection = open()
  await collection.run(never)
  pass(graceMs)
  const stop = new AbortController()
  store.onChange = (operation) => {
    if (operation === 'create') stop.abort()
  }
  await assert.rejects(collection.run(stop.signal), { name: 'AbortError' })
  assert.ok(store.objects.has(`layers/${oldLayer}/condemned`))
})

test('layers below a layer whose manifest is gone stay', async () => {
  const { store, put, open, stored, pass } = await setUp()
  await putAll(put)
  const collection = open()
  store.objects.delete(`layers/${upper}/manifest`)
  await assert.rejects(open().run(never), { reason: 'object_missing' })
  pass(graceMs)
  await assert.rejects(collection.run(never), { reason: 'object_missing' })
  assert.ok((await stored()).includes(`layers/${lower}`))
  assert.equal(store.objects.has(`layers/${lower}/condemned`), false)
})

test('a node begins no pass that may overlap with the pass of the next hour', async () => {
  const { store, put, open, pass } = await setUp()
  await putAll(put)
  pass(hourMs / 2)
  const collection = open()
  await collection.run(never)
  assert.deepEqual(await store.list('collections/'), [])
  pass(hourMs / 2)
  await collection.run(never)
  assert.equal((await store.list('collections/')).length, 1)
})

test('the nodes of a fleet share one pass per hour', async () => {
  const { store, put, open, pass } = await setUp()
  await putAll(put)
  const [first, second] = [open(), open()]
  await first.run(never)
  store.onChange = assert.fail
  store.objects.delete(`layers/${oldLayer}/condemned`)
  await first.run(never)
  store.onChange = (operation, key) =>
    assert.deepEqual([operation, key.slice(0, 12)], ['create', 'collections/'])
  await second.run(never)
  store.onChange = () => {}
  assert.equal(store.objects.has(`layers/${oldLayer}/condemned`), false)
  pass(hourMs)
  await second.run(never)
  assert.equal(store.objects.has(`layers/${oldLayer}/condemned`), true)
  assert.equal((await store.list('collections/')).length, 1)
})

async function setUpNode(t: TestContext) {
  const shared = await setUp()
  const dir = await mkdtemp(join(tmpdir(), 'atoll-layers-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const folder = join(dir, 'layers/sabcabcabcabc')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'file'), 'content')
  const marks = await openMarks(join(dir, 'marks'))
  const noRoomNeeded = () => ({ [Symbol.dispose]() {} })
  const { bundles, condemned, nowMs } = shared
  const transfers = await openTransfers({
    ...{ dir: join(dir, 'uploads'), bundles, reserveSpace: noRoomNeeded },
  })
  const layers = createObjectLayers({
    ...{ transfers, marks, claims: rememberClaims(condemned, nowMs) },
    steps: {
      use: () => true,
      chain: () => [folder],
      describe: () => ({ key: 'k', sizeBytes: 1 }),
      adopt: async () => assert.fail('the layer is here'),
    },
    base: {
      ...{ dir, workPrefix: '.tmp-' },
      has: async () => false,
      commit: async () => assert.fail('no base layer is fetched'),
    },
  })
  return { ...shared, marks, upload: () => layers.upload('sabcabcabcabc', never) }
}

test('a layer that was removed is uploaded again for the next bundle that needs it', async (t) => {
  const { open, stored, pass, marks, upload } = await setUpNode(t)
  const collection = open()
  await upload()
  await collection.run(never)
  pass(graceMs)
  await assert.rejects(upload(), { reason: 'object_expiring' })
  await collection.run(never)
  assert.deepEqual(await stored(), [])
  assert.ok(marks.has('layers', 'sabcabcabcabc'), 'the node still believes that the store has it')
  await upload()
  assert.deepEqual(await stored(), ['layers/sabcabcabcabc'])
})

test('an upload that needs a condemned layer keeps it for another grace time', async (t) => {
  const { open, stored, pass, upload, put } = await setUpNode(t)
  const collection = open()
  await upload()
  await collection.run(never)
  pass(graceMs / 2)
  await upload()
  await collection.run(never)
  pass(graceMs - hourMs)
  await collection.run(never)
  assert.deepEqual(await stored(), ['layers/sabcabcabcabc'])
  await put('templates/t1', { template: { layer: 'sabcabcabcabc' } })
  pass(graceMs)
  await collection.run(never)
  assert.deepEqual(await stored(), ['layers/sabcabcabcabc'])
})
