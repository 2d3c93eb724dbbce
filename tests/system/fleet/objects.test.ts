/** The client of the object store against a real one: the S3 gateway of Ceph. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { randomLabel } from '@atoll/kit/id'
import { freePort } from '@atoll/kit/testing/free-port'
import { createBundles } from '@atoll/objects/bundles'
import { createCondemned, graceMs } from '@atoll/objects/condemned'
import { checkObjectStore } from '@atoll/objects/object-store.contract'
import { createS3Store } from '@atoll/objects/s3-store'
import type { S3Store } from '@atoll/objects/s3-store'
import { startCeph } from '../../../tools/fleet/ceph.ts'
import type { CephStore } from '../../../tools/fleet/ceph.ts'
import { createBucket, objectSettings } from './bucket.ts'

let ceph: CephStore
let store: S3Store
const bucket = `atoll-${randomLabel(8)}`

before(async () => {
  ceph = await startCeph()
  await createBucket(ceph, bucket)
  store = createS3Store(objectSettings(ceph, bucket))
})

after(async () => {
  store.close()
  await ceph[Symbol.asyncDispose]()
})

checkObjectStore(async () => store)

test('a bundle of two large parts is read as it was written; a changed part is refused', async () => {
  const bundles = createBundles(
    store,
    createKeyRing([newKey()], async () => {}),
  )
  const path = `snapshots/${randomLabel(8)}`
  const contents = [Buffer.alloc(20 * 1024 * 1024, 'disk'), Buffer.alloc(9 * 1024 * 1024, 'memory')]
  const parts = contents.map((content, index) => ({
    name: `part${index}`,
    unpackedBytes: content.length,
    async *open() {
      yield content
    },
  }))
  const bundle = { path, facts: { is: 'a test' }, parts }
  const outcomes = await Promise.all(
    ['one', 'two'].map((attempt) => bundles.write({ ...bundle, attempt })),
  )
  assert.deepEqual(outcomes.toSorted(), ['present', 'written'])
  const manifest = await bundles.find(path)
  assert.deepEqual(manifest?.facts, { is: 'a test' })
  for (const [index, part] of (manifest?.parts ?? []).entries()) {
    const read = await bundles.read(part, async (content) =>
      Buffer.concat(await Array.fromAsync(content)),
    )
    assert.ok(contents[index]?.equals(read))
  }
  assert.equal((await store.list(`${path}/`)).length, 3)
  const [first] = manifest?.parts ?? []
  assert.ok(first)
  await store.delete([first.key])
  await store.create(first.key, Buffer.alloc(first.sizeBytes))
  await assert.rejects(
    bundles.read(first, async (content) => void (await Array.fromAsync(content))),
    { reason: 'object_damaged' },
  )
  await bundles.remove(path)
  assert.deepEqual(await store.list(`${path}/`), [])
})

test('a bundle that nothing needs is removed after the grace time, unless it is claimed', async () => {
  const ring = createKeyRing([newKey()], async () => {})
  const bundles = createBundles(store, ring)
  let now = 0
  const ageMs = async (key: string) => {
    const age = await store.ageMs(key)
    return age === undefined ? undefined : age + now
  }
  const condemned = createCondemned({ store: { ...store, ageMs }, bundles })
  const prefix = `layers-${randomLabel(8)}/`
  const [claimed, unneeded, needed] = ['a', 'b', 'c'].map((name) => `${prefix}${name}`)
  assert.ok(claimed !== undefined && unneeded !== undefined)
  const part = { name: 'files', unpackedBytes: 1, open: one }
  for (const path of [claimed, unneeded, needed ?? '']) {
    await bundles.write({ path, attempt: 'one', facts: {}, parts: [part] })
  }
  const isNeeded = (path: string) => path === needed
  const work = { prefix, isOurs: () => true, isNeeded, onError: assert.fail }
  const collect = () => condemned.collect(work, new AbortController().signal)
  await collect()
  now = graceMs / 2
  assert.equal(await condemned.claim(claimed), true)
  now = graceMs
  await assert.rejects(condemned.claim(unneeded), { reason: 'object_expiring' })
  await collect()
  assert.equal(await condemned.claim(unneeded), false)
  assert.deepEqual((await bundles.listPaths(prefix)).toSorted(), [claimed, needed])
})

test('a wrong secret, a missing bucket and a store that is gone are clear errors', async (t) => {
  const settings = objectSettings(ceph, bucket)
  const cases = [
    [{ ...settings, secretAccessKey: 'wrong' }, /status 403.*access key/],
    [{ ...settings, bucket: 'atoll-no-such-bucket' }, /status 404.*bucket/],
    [{ ...settings, endpoint: `http://127.0.0.1:${await freePort()}` }, /does not work/],
  ] as const
  for (const [wrong, message] of cases) {
    const broken = createS3Store(wrong)
    t.after(() => broken.close())
    const refused = { reason: 'objects_unavailable', kind: 'unavailable', message }
    await assert.rejects(broken.list('any/'), refused)
    // A manifest that cannot be looked for must not count as absent.
    await assert.rejects(broken.read('any', 10), refused)
    await assert.rejects(broken.create('any', Buffer.from('x')), refused)
    await assert.rejects(broken.upload('any', one()), refused)
  }
})

test('a store that accepts connections and never answers fails the request', async (t) => {
  const deaf = createServer(() => {}).listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  t.after(() => deaf.close())
  const address = deaf.address()
  assert.ok(address !== null && typeof address === 'object')
  const endpoint = `http://127.0.0.1:${address.port}`
  const limits = { idleMs: 300, attempts: 2 }
  const broken = createS3Store({ ...objectSettings(ceph, bucket), endpoint }, limits)
  t.after(() => broken.close())
  await assert.rejects(broken.list('any/'), { reason: 'objects_unavailable' })
})

test('an upload that is aborted, or whose source fails, leaves nothing and says why', async () => {
  const stop = new AbortController()
  const key = `any/${randomLabel(8)}`
  const pieces = (onSecond: () => void) =>
    (async function* () {
      yield Buffer.alloc(17 * 1024 * 1024)
      onSecond()
      yield Buffer.alloc(17 * 1024 * 1024)
    })()
  await assert.rejects(
    store.upload(
      key,
      pieces(() => stop.abort()),
      stop.signal,
    ),
    { name: 'AbortError' },
  )
  await assert.rejects(store.upload(key, one(), stop.signal), { name: 'AbortError' })
  const source = pieces(() => {
    throw new Error('the disk fails')
  })
  await assert.rejects(store.upload(key, source), (error: Error) => {
    assert.match(String(error.cause), /the disk fails/)
    return true
  })
  assert.deepEqual(await store.list(key), [])
})

async function* one(): AsyncGenerator<Buffer> {
  yield Buffer.from('x')
}
