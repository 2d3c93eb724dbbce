import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { randomLabel } from '@atoll/kit/id'
import type { ObjectStore } from './object-store.ts'

/** Times of a store are whole seconds, and its gateways may differ a little. */
const toleranceMs = 5_000

/** Checks what every object store promises. `open` is called once per test. */
export function checkObjectStore(open: () => Promise<ObjectStore>): void {
  const setup = async () => ({ store: await open(), folder: `contract/${randomLabel(8)}` })

  test('an object is created once; a second create changes nothing', async () => {
    const { store, folder } = await setup()
    const key = `${folder}/manifest`
    assert.equal(await store.create(key, Buffer.from('first')), true)
    assert.equal(await store.create(key, Buffer.from('second')), false)
    assert.equal(String(await store.read(key, 100)), 'first')
  })

  test('of many creates at once, exactly one succeeds', async () => {
    const { store, folder } = await setup()
    const contents = Array.from({ length: 8 }, (_, index) => `content ${index}`)
    const created = await Promise.all(
      contents.map((content) => store.create(`${folder}/one`, Buffer.from(content))),
    )
    assert.equal(created.filter(Boolean).length, 1)
    const kept = String(await store.read(`${folder}/one`, 100))
    assert.equal(kept, contents[created.indexOf(true)])
  })

  test('a large object has the bytes that were uploaded, in several pieces', async () => {
    const { store, folder } = await setup()
    const chunks = Array.from({ length: 20 }, () => randomBytes(1024 * 1024 + 7))
    await store.upload(`${folder}/large`, toStream(chunks))
    const total = Buffer.concat(chunks)
    assert.equal(await store.size(`${folder}/large`), total.length)
    const stream = await store.open(`${folder}/large`)
    assert.ok(stream)
    const hash = createHash('sha256')
    for await (const chunk of stream) hash.update(chunk)
    assert.equal(hash.digest('hex'), createHash('sha256').update(total).digest('hex'))
  })

  test('an empty object can be uploaded', async () => {
    const { store, folder } = await setup()
    await store.upload(`${folder}/empty`, toStream([]))
    assert.equal(await store.size(`${folder}/empty`), 0)
  })

  test('an upload whose source fails leaves no object, and fails with that reason', async () => {
    const { store, folder } = await setup()
    const source = async function* fail() {
      for (let index = 0; index < 12; index += 1) yield randomBytes(1024 * 1024)
      throw new Error('the folder has gone')
    }
    await assert.rejects(store.upload(`${folder}/broken`, source()), (error: Error) => {
      const cause = error.cause instanceof Error ? error.cause.message : ''
      return /the folder has gone/.test(`${error.message} ${cause}`)
    })
    assert.equal(await store.size(`${folder}/broken`), undefined)
    await store.abandonUploads(folder)
    assert.deepEqual(await store.list(`${folder}/`), [])
  })

  test('an aborted upload leaves no object', async () => {
    const { store, folder } = await setup()
    const stop = new AbortController()
    const source = async function* abort() {
      yield randomBytes(1024 * 1024)
      stop.abort()
      yield randomBytes(1024 * 1024)
    }
    await assert.rejects(store.upload(`${folder}/aborted`, source(), stop.signal))
    assert.equal(await store.size(`${folder}/aborted`), undefined)
  })

  test('absent objects are undefined, and their deletion succeeds', async () => {
    const { store, folder } = await setup()
    assert.equal(await store.read(`${folder}/no`, 10), undefined)
    assert.equal(await store.open(`${folder}/no`), undefined)
    assert.equal(await store.size(`${folder}/no`), undefined)
    await store.delete([`${folder}/no`])
  })

  test('a read refuses an object that is larger than expected', async () => {
    const { store, folder } = await setup()
    await store.create(`${folder}/big`, Buffer.alloc(101))
    await assert.rejects(store.read(`${folder}/big`, 100))
  })

  test('a list in pages continues after a key, in the order of the keys', async () => {
    const { store, folder } = await setup()
    for (const name of ['b/2', 'a/9', 'b/10', 'c/1']) {
      await store.create(`${folder}/${name}`, Buffer.from(name))
    }
    const after = async (name: string, prefix = '') =>
      (await store.listAfter(`${folder}/${prefix}`, name && `${folder}/${name}`)).map((key) =>
        key.slice(folder.length + 1),
      )
    assert.deepEqual(await after(''), ['a/9', 'b/10', 'b/2', 'c/1'])
    assert.deepEqual(await after('b/10'), ['b/2', 'c/1'])
    assert.deepEqual(await after('b/10', 'b/'), ['b/2'])
    assert.deepEqual(await after('c/1'), [])
  })

  test('the store says what time it is, and how old an object is', async () => {
    const { store, folder } = await setup()
    const startMs = await store.nowMs()
    await store.create(`${folder}/one`, Buffer.from('one'))
    const ageMs = await store.ageMs(`${folder}/one`)
    const limitMs = (await store.nowMs()) - startMs + toleranceMs
    assert.ok(ageMs !== undefined && Math.abs(ageMs) <= limitMs, `${ageMs} of ${limitMs} ms`)
    assert.equal(await store.ageMs(`${folder}/other`), undefined)
  })

  test('lists and deletions reach exactly the keys with a prefix', async () => {
    const { store, folder } = await setup()
    for (const name of ['a/1', 'a/2', 'ab/1']) {
      await store.create(`${folder}/${name}`, Buffer.from(name))
    }
    const listed = await store.list(`${folder}/a/`)
    assert.deepEqual(listed.toSorted(), [`${folder}/a/1`, `${folder}/a/2`])
    await store.delete(listed)
    assert.deepEqual(await store.list(`${folder}/`), [`${folder}/ab/1`])
  })
}

async function* toStream(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}
