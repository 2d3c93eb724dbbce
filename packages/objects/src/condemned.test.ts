import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from './bundles.ts'
import { createCondemned, graceMs, marginMs } from './condemned.ts'
import { createMemoryStore } from './testing/memory-store.ts'

const never = new AbortController().signal

async function setUp() {
  const store = createMemoryStore()
  const bundles = createBundles(
    store,
    createKeyRing([newKey()], async () => {}),
  )
  const condemned = createCondemned({ store, bundles })
  for (const path of ['layers/a', 'layers/b', 'other/c']) {
    await bundles.write({ path, attempt: 'one', facts: {}, parts: [] })
  }
  const errors: string[] = []
  const collect = (...needed: string[]) =>
    condemned.collect(
      {
        prefix: 'layers/',
        isOurs: (path) => !path.includes('others'),
        isNeeded: (path) => needed.includes(path),
        onError: (_error, path) => void errors.push(path),
      },
      never,
    )
  const exists = async (path: string) => (await bundles.find(path)) !== undefined
  return {
    store,
    bundles,
    condemned,
    collect,
    exists,
    errors,
    pass: (ms: number) => (store.clockMs += ms),
  }
}

test('a bundle that nothing needs is removed after the grace time, and no other', async () => {
  const { store, collect, pass, exists } = await setUp()
  await collect('layers/a')
  pass(graceMs - 1)
  await collect('layers/a')
  assert.ok(await exists('layers/b'))
  pass(1)
  await collect('layers/a')
  assert.deepEqual([...store.objects.keys()], ['layers/a/manifest', 'other/c/manifest'])
})

test('a bundle that is needed again in time starts a new grace time', async () => {
  const { collect, pass, exists } = await setUp()
  await collect('layers/a')
  pass(graceMs)
  await collect('layers/a', 'layers/b')
  await collect('layers/a')
  pass(graceMs - 1)
  await collect('layers/a')
  assert.ok(await exists('layers/b'))
})

test('a claim takes a condemnation back, and is refused when a removal may have begun', async () => {
  const { store, condemned, collect, pass, exists } = await setUp()
  await collect('layers/a')
  pass(graceMs - marginMs - 1)
  assert.equal(await condemned.claim('layers/b'), true)
  assert.deepEqual(await store.list('layers/b/'), ['layers/b/manifest'])
  await collect('layers/a')
  pass(graceMs - marginMs)
  await assert.rejects(condemned.claim('layers/b'), { reason: 'object_expiring' })
  pass(marginMs)
  await collect('layers/a')
  assert.equal(await exists('layers/b'), false)
  assert.equal(await condemned.claim('layers/b'), false)
})

test('a claim during a removal never says that the bundle is there', async () => {
  const { store, condemned, collect, pass } = await setUp()
  await collect('layers/a')
  pass(graceMs)
  const claims: unknown[] = []
  store.onChange = async (operation) => {
    if (operation !== 'delete') return
    claims.push(
      await condemned.claim('layers/b').catch((error: { reason: string }) => error.reason),
    )
  }
  await collect('layers/a')
  assert.ok(claims.length > 1)
  assert.ok(!claims.includes(true), String(claims))
})

test('what cannot be read stays, and holds up no other bundle', async () => {
  const { store, bundles, collect, pass, errors, exists } = await setUp()
  await bundles.write({ path: 'layers/0', attempt: 'one', facts: {}, parts: [] })
  const unreadable = Buffer.from('of another key')
  store.objects.set('layers/0/manifest', unreadable)
  await collect('layers/a')
  pass(graceMs)
  await collect('layers/a')
  assert.deepEqual(errors, ['layers/0'])
  assert.equal(store.objects.get('layers/0/manifest'), unreadable)
  assert.equal(await exists('layers/b'), false)
})

test('left parts of an interrupted upload or removal are removed like a bundle', async () => {
  const { store, collect, pass } = await setUp()
  store.objects.set('layers/left/two.files', Buffer.from('x'))
  await collect('layers/a', 'layers/b')
  pass(graceMs)
  await collect('layers/a', 'layers/b')
  assert.deepEqual(await store.list('layers/left/'), [])
})

test('objects of others are neither condemned nor removed, whatever their names', async () => {
  const { store, collect, pass } = await setUp()
  const keys = ['layers/others/condemned', 'layers/others/1.png', 'layers/b/others/1.png']
  for (const key of keys) store.objects.set(key, Buffer.from('of others'))
  await collect('layers/others')
  pass(graceMs)
  await collect()
  await collect()
  const left = (await store.list('layers/')).filter((key) => key.includes('others'))
  assert.deepEqual(left, keys.toSorted())
})

/** Two passes work on one bundle at a time, and a third node uploads it as soon as it may. */
for (const [pause, nth] of [
  ['list', 1],
  ['ageMs', 1],
  ['find', 1],
  ['ageMs', 2],
] as const) {
  test(`a slow removal spares what was uploaded after another pass removed the bundle (${pause} ${nth})`, async () => {
    const { store, bundles, condemned, collect, exists, pass } = await setUp()
    await collect('layers/a')
    pass(graceMs)
    const upload = async () => {
      await collect('layers/a')
      assert.equal(await condemned.claim('layers/b'), false)
      const part = { name: 'files', unpackedBytes: 1, open: one }
      await bundles.write({ path: 'layers/b', attempt: 'two', facts: {}, parts: [part] })
    }
    let calls = 0
    /** Lets all that happen after this step of the slow pass. */
    const late = async <T>(result: Promise<T>): Promise<T> => {
      await result
      calls += 1
      if (calls === nth) await upload()
      return result
    }
    const slow = createCondemned({
      store: {
        ...store,
        list: (...args) => (pause === 'list' ? late(store.list(...args)) : store.list(...args)),
        ageMs: (...args) => (pause === 'ageMs' ? late(store.ageMs(...args)) : store.ageMs(...args)),
      },
      bundles: {
        ...bundles,
        find: (...args) => (pause === 'find' ? late(bundles.find(...args)) : bundles.find(...args)),
      },
    })
    const work = { prefix: 'layers/', isOurs: (path: string) => path === 'layers/b' }
    await slow.collect({ ...work, isNeeded: () => false, onError: assert.fail }, never)
    assert.ok(await exists('layers/b'))
    assert.ok(store.objects.has('layers/b/two.files'))
  })
}

async function* one(): AsyncGenerator<Buffer> {
  yield Buffer.from('x')
}
