import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from './bundles.ts'
import { manifestKey } from './manifest.ts'
import { createMemoryStore } from './testing/memory-store.ts'

const path = 'snapshots/abc'

function setup() {
  const store = createMemoryStore()
  const ring = createKeyRing([newKey()], async () => {})
  const bundles = createBundles(store, ring)
  const content = randomBytes(100_000)
  const partOf = (name: string, bytes = content) => ({
    name,
    unpackedBytes: bytes.length,
    async *open() {
      yield bytes
    },
  })
  const bundle = (attempt: string, facts: unknown = { from: attempt }) => ({
    ...{ path, attempt, facts },
    parts: [partOf('disk'), partOf('memory', randomBytes(10))],
  })
  const readDisk = async () => {
    const part = (await bundles.find(path))?.parts[0]
    assert.ok(part)
    return bundles.read(part, collect)
  }
  return { store, ring, bundles, content, bundle, partOf, readDisk }
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('a bundle is read as it was written, and nothing of it is readable in the store', async () => {
  const { store, bundles, content, bundle, readDisk } = setup()
  assert.equal(await bundles.write(bundle('a1', { token: 'very secret' })), 'written')
  assert.deepEqual((await bundles.find(path))?.facts, { token: 'very secret' })
  assert.ok(content.equals(await readDisk()))
  for (const body of store.objects.values()) {
    assert.ok(!body.includes('very secret') && !body.includes(content.subarray(0, 32)))
  }
})

test('the manifest is written last, after all parts', async () => {
  const { store, bundles, bundle } = setup()
  const changes: string[] = []
  store.onChange = (_operation, key) => void changes.push(key)
  await bundles.write(bundle('a1'))
  assert.deepEqual(changes, [`${path}/a1.disk`, `${path}/a1.memory`, `${path}/manifest`])
})

test('a bundle is whole only with all parts in their sizes', async () => {
  const { store, bundles, bundle } = setup()
  assert.equal(await bundles.findWhole(path), undefined)
  await bundles.write(bundle('a1'))
  assert.equal((await bundles.findWhole(path))?.attempt, 'a1')
  const memory = store.objects.get(`${path}/a1.memory`) ?? assert.fail('no memory')
  store.objects.set(`${path}/a1.memory`, memory.subarray(1))
  assert.equal(await bundles.findWhole(path), undefined)
  store.objects.delete(`${path}/a1.memory`)
  assert.equal(await bundles.findWhole(path), undefined)
  store.setDown(true)
  await assert.rejects(bundles.findWhole(path), { reason: 'objects_unavailable' })
})

test('a retry never overwrites: the first bundle stays, with its parts', async () => {
  const { store, bundles, content, bundle, readDisk } = setup()
  await bundles.write(bundle('a1'))
  assert.equal(await bundles.write(bundle('a2')), 'present')
  assert.ok(content.equals(await readDisk()))
  assert.ok([...store.objects.keys()].every((key) => !key.includes('a2')))
})

test('of two uploads at once, one bundle results, and the parts of the other are removed', async () => {
  const { store, bundles, bundle, readDisk } = setup()
  const outcomes = await Promise.all([bundles.write(bundle('a1')), bundles.write(bundle('a2'))])
  assert.deepEqual(outcomes.toSorted(), ['present', 'written'])
  await readDisk()
  assert.equal(store.objects.size, 3)
})

test('a lost answer to the manifest counts as written', async () => {
  const { store, bundles, bundle } = setup()
  const create = store.create.bind(store)
  // The store has the object, and the repeated request is refused.
  store.create = async (key, body) => (await create(key, body), create(key, body))
  assert.equal(await bundles.write(bundle('a1')), 'written')
  assert.equal((await bundles.find(path))?.attempt, 'a1')
})

test('a store that fails at the manifest leaves no parts once it is back', async () => {
  const { store, bundles, bundle } = setup()
  store.onChange = (operation) => {
    if (operation === 'create') throw new Error('connection reset')
  }
  await assert.rejects(bundles.write(bundle('a1')), /connection reset/)
  assert.equal(store.objects.size, 0)
})

test('a manifest that arrives after its parts were discarded is replaced by the next upload', async () => {
  const { store, bundles, content, bundle, readDisk } = setup()
  await bundles.write(bundle('a1'))
  store.objects.delete(`${path}/a1.disk`)
  assert.equal(await bundles.write(bundle('a2')), 'written')
  assert.ok(content.equals(await readDisk()))
  assert.equal(await bundles.write(bundle('a3')), 'present')
})

test('an upload that is not wanted any more writes no manifest', async () => {
  const { store, bundles, bundle } = setup()
  const unwanted = { ...bundle('a1'), isWanted: () => false }
  assert.equal(await bundles.write(unwanted), 'unwanted')
  assert.equal(store.objects.size, 0)
})

test('what a crash left is discarded, but never a bundle that was completed', async () => {
  const { store, bundles, bundle } = setup()
  store.objects.set(`${path}/dead.disk`, Buffer.from('half'))
  await bundles.write(bundle('a1'))
  await bundles.discard(path, 'dead')
  await bundles.discard(path, 'a1')
  assert.deepEqual([...store.objects.keys()].toSorted(), [
    `${path}/a1.disk`,
    `${path}/a1.memory`,
    manifestKey(path),
  ])
})

const damages: Record<string, (body: Buffer) => Buffer> = {
  changed: (body) => (body.writeUInt8(body.readUInt8(500) ^ 1, 500), body),
  shorter: (body) => body.subarray(0, -1),
  longer: (body) => Buffer.concat([body, Buffer.alloc(1)]),
  empty: () => Buffer.alloc(0),
}
for (const [how, damage] of Object.entries(damages)) {
  test(`a part that is ${how} is refused`, async () => {
    const { store, bundles, bundle, readDisk } = setup()
    await bundles.write(bundle('a1'))
    const key = `${path}/a1.disk`
    store.objects.set(key, damage(Buffer.from(store.objects.get(key) ?? '')))
    await assert.rejects(readDisk(), { reason: 'object_damaged' })
  })
}

test('a reader that stops early does not make a part pass its check', async () => {
  const { bundles, bundle } = setup()
  await bundles.write(bundle('a1'))
  const part = (await bundles.find(path))?.parts[0]
  assert.ok(part)
  await assert.rejects(
    bundles.read(part, async () => 'read nothing'),
    { reason: 'object_damaged' },
  )
})

test('the part of another bundle, and a missing part, are refused', async () => {
  const { store, bundles, bundle, readDisk } = setup()
  await bundles.write(bundle('a1'))
  await bundles.write({ ...bundle('b1'), path: 'snapshots/other' })
  const foreign = store.objects.get('snapshots/other/b1.disk')
  assert.ok(foreign)
  store.objects.set(`${path}/a1.disk`, foreign)
  await assert.rejects(readDisk(), { reason: 'object_damaged' })
  store.objects.delete(`${path}/a1.disk`)
  await assert.rejects(readDisk(), { reason: 'object_missing' })
})

test('a manifest of another bundle, or with a missing key, cannot be used', async () => {
  const { store, bundles, bundle } = setup()
  await bundles.write(bundle('a1'))
  const manifest = store.objects.get(manifestKey(path))
  assert.ok(manifest)
  store.objects.set(manifestKey('snapshots/other'), manifest)
  await assert.rejects(bundles.find('snapshots/other'), { reason: 'encrypted_value_damaged' })
  const strangers = createBundles(
    store,
    createKeyRing([newKey()], async () => {}),
  )
  await assert.rejects(strangers.find(path), { reason: 'encryption_key_missing' })
})

test('objects that cannot be read are never deleted', async () => {
  const { store, bundles, bundle } = setup()
  await bundles.write(bundle('a1'))
  const before = [...store.objects.keys()]
  const strangers = createBundles(
    store,
    createKeyRing([newKey()], async () => {}),
  )
  await assert.rejects(strangers.remove(path), { reason: 'encryption_key_missing' })
  await assert.rejects(strangers.discard(path, 'a1'), { reason: 'encryption_key_missing' })
  assert.deepEqual([...store.objects.keys()], before)
})

test('a removal deletes the manifest first, and only its own bundle', async () => {
  const { store, bundles, bundle } = setup()
  await bundles.write(bundle('a1'))
  await bundles.write({ ...bundle('b1'), path: `${path}d` })
  const deleted: string[] = []
  store.onChange = (_operation, key) => void deleted.push(key)
  await bundles.remove(path)
  assert.equal(deleted[0], manifestKey(path))
  assert.equal(deleted.length, 3)
  assert.ok(await bundles.find(`${path}d`))
  await bundles.remove(path)
})

test('after a rotation, older bundles are readable as long as the older key is there', async () => {
  const { bundles, ring, bundle, readDisk } = setup()
  await bundles.write(bundle('a1'))
  await ring.add()
  await readDisk()
})
