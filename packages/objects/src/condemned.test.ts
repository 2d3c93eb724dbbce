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
  let now = 1_000_000
  const condemned = createCondemned({ store, bundles, nowMs: () => now })
  for (const path of ['layers/a', 'layers/b', 'other/c']) {
    await bundles.write({ path, attempt: 'one', facts: {}, parts: [] })
  }
  const errors: string[] = []
  const collect = (...needed: string[]) =>
    condemned.collect(
      {
        prefix: 'layers/',
        isNeeded: (path) => needed.includes(path),
        onError: (_error, path) => void errors.push(path),
      },
      never,
    )
  const exists = async (path: string) => (await bundles.find(path)) !== undefined
  return { store, bundles, condemned, collect, exists, errors, pass: (ms: number) => (now += ms) }
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
  store.objects.set('layers/b/condemned', Buffer.from('no time'))
  pass(graceMs)
  await collect('layers/a')
  assert.deepEqual(errors, ['layers/0'])
  assert.equal(store.objects.get('layers/0/manifest'), unreadable)
  assert.ok(await exists('layers/b'), 'its grace time begins anew')
})

test('left parts of an interrupted upload or removal are removed like a bundle', async () => {
  const { store, collect, pass } = await setUp()
  store.objects.set('layers/left/two.files', Buffer.from('x'))
  await collect('layers/a', 'layers/b')
  pass(graceMs)
  await collect('layers/a', 'layers/b')
  assert.deepEqual(await store.list('layers/left/'), [])
})
