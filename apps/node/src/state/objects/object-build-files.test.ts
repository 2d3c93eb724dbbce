/** Files for build steps in the object store, on real files and a store in memory. */
import assert from 'node:assert/strict'
import { mkdtempDisposable, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createBundles } from '@atoll/objects/bundles'
import { createMemoryStore } from '@atoll/objects/testing/memory-store'
import { openBuildFiles } from '../build-files.ts'
import { openLinkedFolders } from './linked-folders.ts'
import { openMarks } from './marks.ts'
import { openObjectBuildFiles } from './object-build-files.ts'
import { shareBuildFiles } from './shared-build-files.ts'
import { openTransfers } from './transfers.ts'

const never = new AbortController().signal
const noRoomNeeded = () => ({ [Symbol.dispose]() {} })
const hourMs = 60 * 60 * 1000
const hash = 'ab'.repeat(32)
const other = 'cd'.repeat(32)

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}

async function setUp() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-build-files-'))
  const store = createMemoryStore()
  const bundles = createBundles(
    store,
    createKeyRing([newKey()], async () => {}),
  )
  const errors: unknown[] = []
  store.clockMs = Date.now()
  let laterMs = 0
  const nowMs = () => Date.now() + laterMs
  async function openNode(node: string) {
    const dir = join(folder.path, node)
    const local = await openBuildFiles(join(dir, 'files'), { reserveSpace: noRoomNeeded })
    const marks = await openMarks(join(dir, 'marks'))
    const links = await openLinkedFolders(join(dir, 'links'))
    const transfers = await openTransfers({
      ...{ dir: join(dir, 'uploads'), bundles, reserveSpace: noRoomNeeded },
    })
    const stored = await openObjectBuildFiles({
      ...{ store, bundles, transfers, marks, links, nowMs, workDir: join(dir, 'work') },
      onError: (error) => errors.push(error),
    })
    const files = shareBuildFiles(local, stored, (error) => errors.push(error))
    return {
      ...{ dir, files, stored, transfers },
      read: async (owner = 'team', name = hash) => {
        const path = await files.find(owner, name)
        return path === undefined ? undefined : readFile(path, 'utf8')
      },
      /** Does what a pass of the node does. */
      async pass() {
        const { uploads, uses } = await files.findWork()
        for (const file of uploads) await stored.upload(file, never)
        for (const file of uses) await stored.noteUse(file, never)
        return uploads.length
      },
    }
  }
  const [first, second] = [await openNode('first'), await openNode('second')]
  const paths = () => bundles.listPaths('build-files/')
  /** Time of the nodes alone. */
  const passOnNodes = (ms: number) => void (laterMs += ms)
  const pass = (ms: number) => {
    passOnNodes(ms)
    store.clockMs += ms
  }
  const close = () => folder.remove()
  return {
    store,
    bundles,
    errors,
    first,
    second,
    openNode,
    paths,
    pass,
    passOnNodes,
    [Symbol.asyncDispose]: close,
  }
}

test('files that one node received are used by another, and kept there', async () => {
  await using world = await setUp()
  const { store, first, second } = world
  await first.files.put('team', hash, pieces('one ', 'two'))
  assert.equal(await second.files.has('team', hash), false)
  assert.equal(await first.pass(), 1)
  assert.equal(await first.pass(), 0)
  for (const body of store.objects.values()) assert.ok(!body.includes('one two'))
  assert.equal(await second.files.has('team', hash), true)
  assert.deepEqual(await readdir(second.dir), ['links', 'marks', 'uploads', 'work'])
  const reads = await Promise.all([second.read(), second.read()])
  assert.deepEqual(reads, ['one two', 'one two'])
  assert.equal(await second.pass(), 0, 'the store has it')
  store.setDown(true)
  assert.equal(await second.read(), 'one two')
  assert.deepEqual(await readdir(join(second.dir, 'work')), [])
})

test('files of one owner are no files of another', async () => {
  await using world = await setUp()
  const { first, second } = world
  await first.files.put('team', hash, pieces('x'))
  await first.pass()
  for (const [owner, name] of [
    ['other', hash],
    ['tea', hash],
    ['team', other],
  ] as const) {
    assert.equal(await second.files.has(owner, name), false)
    assert.equal(await second.read(owner, name), undefined)
  }
  await assert.rejects(second.files.find('../team', hash))
  await assert.rejects(second.files.has('team', '../x'))
})

test('while the store is down, files are received and used, and uploaded afterwards', async () => {
  await using world = await setUp()
  const { store, errors, first, second } = world
  store.setDown(true)
  assert.equal(await first.files.has('team', hash), false)
  assert.equal(errors.length, 1)
  await first.files.put('team', hash, pieces('x'))
  assert.deepEqual([await first.files.has('team', hash), await first.read()], [true, 'x'])
  await assert.rejects(first.pass(), { reason: 'objects_unavailable' })
  await assert.rejects(second.read(), { reason: 'objects_unavailable' })
  store.setDown(false)
  // The node restarts.
  const again = await world.openNode('first')
  await again.transfers.cleanUp(never)
  assert.equal(await again.pass(), 1)
  assert.equal(await second.read(), 'x')
})

test('files that replace others are uploaded too', async () => {
  await using world = await setUp()
  const { first, second, paths } = world
  await first.files.put('team', hash, pieces('old'))
  await first.pass()
  await first.files.put('team', hash, pieces('new'))
  assert.equal(await first.pass(), 1)
  assert.equal(await second.read(), 'new')
  assert.deepEqual(await paths(), [`build-files/team/${hash}`])
})

test('a damaged object is never used', async () => {
  await using world = await setUp()
  const { store, first, second } = world
  await first.files.put('team', hash, pieces('x'))
  await first.pass()
  for (const [key, body] of store.objects) {
    if (key.endsWith('.archive')) store.objects.set(key, Buffer.concat([body, Buffer.from('y')]))
  }
  await assert.rejects(second.read(), { reason: 'object_damaged' })
  assert.deepEqual(await readdir(join(second.dir, 'work')), [])
  assert.equal((await second.files.list()).length, 0)
})

test('files leave the store a day after their last use on any node', async () => {
  await using world = await setUp()
  const { first, second, paths, pass } = world
  await first.files.put('team', hash, pieces('x'))
  await first.files.put('team', other, pieces('y'))
  await first.pass()
  pass(20 * hourMs)
  assert.equal(await second.files.has('team', hash), true)
  pass(4 * hourMs)
  await first.stored.sweep(never)
  assert.equal((await paths()).length, 2)
  pass(2 * hourMs)
  await first.stored.sweep(never)
  assert.deepEqual(await paths(), [`build-files/team/${hash}`])
  assert.equal(await second.files.has('team', other), false)
  pass(20 * hourMs)
  await second.stored.sweep(never)
  assert.deepEqual(await paths(), [])
})

test('the clocks of nodes do not decide what is removed', async () => {
  await using world = await setUp()
  const { first, second, paths, pass, passOnNodes } = world
  // Slow when it notes the use.
  passOnNodes(-100 * hourMs)
  await first.files.put('team', hash, pieces('x'))
  await first.pass()
  await first.stored.sweep(never)
  assert.equal((await paths()).length, 1)
  // Fast when it sweeps.
  passOnNodes(300 * hourMs)
  await second.stored.sweep(never)
  assert.equal((await paths()).length, 1)
  // Fast when it notes the use.
  await second.files.has('team', hash)
  passOnNodes(-200 * hourMs)
  pass(24 * hourMs)
  await first.stored.sweep(never)
  assert.equal((await paths()).length, 1)
  pass(2 * hourMs)
  await first.stored.sweep(never)
  assert.deepEqual(await paths(), [])
})

test('the use of a file on its node reaches the store, and what the store lost is uploaded again', async () => {
  await using world = await setUp()
  const { store, first, paths, pass } = world
  await first.files.put('team', hash, pieces('x'))
  await first.pass()
  pass(20 * hourMs)
  const path = (await first.files.find('team', hash)) ?? ''
  const usedAt = (Date.now() + 20 * hourMs) / 1000
  await utimes(path, usedAt, usedAt)
  await first.pass()
  pass(10 * hourMs)
  await first.stored.sweep(never)
  assert.equal((await paths()).length, 1)
  store.objects.clear()
  await utimes(path, usedAt + 7200, usedAt + 7200)
  await first.pass()
  assert.equal(await first.pass(), 1)
  assert.equal((await paths()).length, 1)
})

test('a sweep keeps what it cannot read, what has no use yet, and what belongs to others', async () => {
  await using world = await setUp()
  const { store, first, errors, paths, pass } = world
  await first.files.put('team', hash, pieces('x'))
  await first.pass()
  store.objects.set(`build-files/team/${hash}/manifest`, Buffer.from('damaged'))
  store.objects.set(`build-files/team/${other}/manifest`, Buffer.from('without a use'))
  for (const key of ['build-files/x', 'build-files/team/short/a', 'build-filesystem/a/b']) {
    store.objects.set(key, Buffer.from('of others'))
  }
  pass(100 * hourMs)
  const before = new Set(store.objects.keys())
  await first.stored.sweep(never)
  assert.equal(errors.length, 1)
  for (const key of before) assert.ok(store.objects.has(key), key)
  assert.ok((await paths()).includes(`build-files/team/${other}`))
})

test('half a download of a dead process is removed', async () => {
  await using world = await setUp()
  await writeFile(join(world.first.dir, 'work', 'half'), 'ha')
  await world.openNode('first')
  assert.deepEqual(await readdir(join(world.first.dir, 'work')), [])
})
