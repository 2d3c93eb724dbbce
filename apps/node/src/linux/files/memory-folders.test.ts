import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { createMemoryFolders } from './memory-folders.ts'

async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-memory-'))
  const clock = { nowMs: 0 }
  const pages = Buffer.concat([randomBytes(100_000), Buffer.alloc(900_000, 'ab')])
  await writeFile(join(dir, 'pages.img'), pages)
  await writeFile(join(dir, 'small'), 'x')
  return {
    dir,
    clock,
    pages,
    folders: createMemoryFolders(() => clock.nowMs),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('unused folders are packed, and unpacked when they are used', async () => {
  await using world = await setup()
  const { dir, clock, folders } = world
  await folders.packIdle([dir], 1000)
  assert.deepEqual((await readdir(dir)).toSorted(), ['pages.img', 'small'])
  clock.nowMs = 1000
  await folders.packIdle([dir], 1000)
  assert.deepEqual((await readdir(dir)).toSorted(), ['pages.img.zst', 'small'])
  assert.ok((await stat(join(dir, 'pages.img.zst'))).size < 200_000)
  const [first, second] = await Promise.all(
    [1, 2].map(() => folders.use(dir, () => readFile(join(dir, 'pages.img')))),
  )
  assert.ok(first?.equals(world.pages) && second?.equals(world.pages))
  assert.deepEqual((await readdir(dir)).toSorted(), ['pages.img', 'small'])
})

test('a folder that is in use, or was a moment ago, is not compressed', async () => {
  await using world = await setup()
  const { dir, clock, folders } = world
  clock.nowMs = 5000
  await folders.use(dir, async () => {
    clock.nowMs = 10_000
    await folders.packIdle([dir], 1000)
  })
  await folders.packIdle([dir], 1000)
  assert.ok((await readdir(dir)).includes('pages.img'))
})

test('a folder that was just written is not idle, even long after the start', async () => {
  await using world = await setup()
  const { dir, clock, folders } = world
  clock.nowMs = 600_000
  await folders.packIdle([dir], 1000)
  assert.ok((await readdir(dir)).includes('pages.img'))
  clock.nowMs += 1000
  await folders.packIdle([dir], 1000)
  assert.ok((await readdir(dir)).includes('pages.img.zst'))
})

test('a reader that arrives during the compression finds the whole folder, and no partial file stays', async () => {
  await using world = await setup()
  const { dir, folders } = world
  const large = randomBytes(48 * 1024 * 1024)
  await writeFile(join(dir, 'pages.img'), large)
  const packing = folders.packIdle([dir], 0)
  const isBegun = async () => (await readdir(dir)).includes('pages.img.zst.next')
  await waitFor('the packing to begin', isBegun, { intervalMs: 1 })
  const seen = await folders.use(dir, async () => {
    await packing
    return readFile(join(dir, 'pages.img'))
  })
  assert.ok(seen.equals(large))
  assert.deepEqual((await readdir(dir)).toSorted(), ['pages.img', 'small'])
})

test('the user of another folder does not wait for packing, which pauses and then continues', async () => {
  await using world = await setup()
  await using busy = await setup()
  await using held = await setup()
  const { dir, folders } = world
  await folders.packIdle([dir], 0)
  assert.ok((await readdir(dir)).includes('pages.img.zst'))
  const packing = await folders.use(held.dir, async () => {
    const underway = folders.packIdle([busy.dir], 0)
    const isBegun = async () => (await readdir(busy.dir)).includes('pages.img.zst.next')
    await waitFor('the packing to begin', isBegun, { intervalMs: 1 })
    const seen = await folders.use(dir, () => readFile(join(dir, 'pages.img')))
    assert.ok(seen.equals(world.pages))
    assert.ok((await readdir(busy.dir)).includes('pages.img'))
    return { underway }
  })
  await packing.underway
  assert.deepEqual((await readdir(busy.dir)).toSorted(), ['pages.img.zst', 'small'])
  const seen = await folders.use(busy.dir, () => readFile(join(busy.dir, 'pages.img')))
  assert.ok(seen.equals(busy.pages))
})

test('several folders are unpacked at once, and one only once for all who need it', async () => {
  await using first = await setup()
  await using second = await setup()
  const { folders } = first
  await folders.packIdle([first.dir, second.dir], 0)
  const dirs = [first.dir, second.dir, first.dir, second.dir]
  const seen = await Promise.all(
    dirs.map((dir) => folders.use(dir, () => readFile(join(dir, 'pages.img')))),
  )
  assert.deepEqual(
    seen.map((pages, at) => pages.equals(at % 2 ? second.pages : first.pages)),
    [true, true, true, true],
  )
})

test('a file that was packed but not yet removed is taken as it is', async () => {
  await using world = await setup()
  const { dir, clock, folders } = world
  await folders.packIdle([dir], 1000)
  clock.nowMs = 1000
  await folders.packIdle([dir], 1000)
  await writeFile(join(dir, 'pages.img.next'), 'half of it')
  const seen = await folders.use(dir, () => readFile(join(dir, 'pages.img')))
  assert.ok(seen.equals(world.pages))
})

test('a folder that has gone is passed over', async () => {
  await createMemoryFolders(() => 0).packIdle(['/nonexistent'], 0)
})
