import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { z } from 'zod'
import { createBundles } from './bundles.ts'
import { manifestKey, readFacts } from './manifest.ts'
import { createMemoryStore } from './testing/memory-store.ts'

const path = 'snapshots/abc'
const manifest = { path, attempt: 'a1', facts: { layer: 'x' }, parts: [] }

/** A store with a part, and a manifest that has exactly these fields. */
function setup(fields: object) {
  const store = createMemoryStore()
  const ring = createKeyRing([newKey()], async () => {})
  using sealing = ring.beginWrite()
  const body = Buffer.from(sealing.seal(JSON.stringify(fields), `object:${path}`))
  store.objects.set(manifestKey(path), body)
  store.objects.set(`${path}/a1.disk`, Buffer.from('content'))
  return { store, bundles: createBundles(store, ring) }
}

for (const newer of [{ format: 2 }, { factsFormat: 2 }, { format: 1, factsFormat: 9 }]) {
  test(`a bundle with ${JSON.stringify(newer)} is refused, and neither deleted nor replaced`, async () => {
    const { store, bundles } = setup({ ...manifest, ...newer })
    const before = new Map(store.objects)
    const refusal = { reason: 'object_unreadable', message: /newer release: upgrade this node/ }
    await assert.rejects(bundles.find(path), refusal)
    await assert.rejects(bundles.remove(path), refusal)
    await assert.rejects(bundles.discard(path, 'a1'), refusal)
    await assert.rejects(bundles.write({ ...manifest, attempt: 'a2' }), refusal)
    assert.deepEqual(store.objects, before)
  })
}

test('a manifest without formats has the first ones', async () => {
  const { bundles } = setup(manifest)
  assert.deepEqual(await bundles.find(path), manifest)
})

test('a new bundle names its formats', async () => {
  const store = createMemoryStore()
  const ring = createKeyRing([newKey()], async () => {})
  await createBundles(store, ring).write(manifest)
  const written = ring.open(String(store.objects.get(manifestKey(path))), `object:${path}`)
  assert.deepEqual(JSON.parse(written), { format: 1, factsFormat: 1, ...manifest })
})

for (const damaged of [{}, { ...manifest, parts: 'none' }, { ...manifest, format: 'x' }]) {
  test(`a manifest such as ${JSON.stringify(damaged)} is damaged, and stays`, async () => {
    const { store, bundles } = setup(damaged)
    await assert.rejects(bundles.remove(path), { reason: 'object_damaged' })
    assert.equal(store.objects.size, 2)
  })
}

test('facts of another kind are damaged', () => {
  const Layer = z.object({ layer: z.string() })
  assert.deepEqual(readFacts(manifest, Layer), { layer: 'x' })
  assert.throws(() => readFacts({ facts: { layer: 1 } }, Layer), { reason: 'object_damaged' })
})
