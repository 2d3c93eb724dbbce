import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { openStepLayers } from './step-layers.ts'

const day = 24 * 3600 * 1000

async function open(dir: string, clock = { nowMs: 0 }) {
  const removed: string[] = []
  const layers = await openStepLayers({
    dir,
    baseDir: (name) => `/base/${name}`,
    nowMs: () => clock.nowMs,
    removeFolder: (path) => rm(path, { recursive: true, force: true }),
    flush: async () => {},
    onRemove: async (path) => void removed.push(basename(path)),
  })
  return { layers, removed, clock }
}

const fill = (text: string) => async (dir: string) => {
  await writeFile(join(dir, 'file'), text)
  return 1
}

test('a layer lies over those below it, also after a restart', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers } = await open(folder.path)
  const one = await layers.add({ below: 'sha', key: 'k1' }, fill('one'))
  const two = await layers.add({ below: one, key: 'k2' }, fill('two'))
  const expected = ['/base/sha', join(folder.path, one), join(folder.path, two)]
  assert.deepEqual(layers.chain(two), expected)
  const { layers: again } = await open(folder.path)
  assert.deepEqual(again.chain(two), expected)
  assert.deepEqual([again.depth(two), again.sizeBytes(two), again.sizeBytes('sha')], [3, 2, 0])
  assert.equal(await again.find('k2'), two)
  assert.equal(await again.find('k3'), undefined)
})

test('layers that several templates share are measured once, and those of others not at all', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers } = await open(folder.path)
  const builtIn = await layers.add({ below: 'sha', key: 'k0' }, async () => 1000)
  const shared = await layers.add({ below: builtIn, key: 'k1' }, async () => 100)
  const one = await layers.add({ below: shared, key: 'k2' }, async () => 10)
  const two = await layers.add({ below: shared, key: 'k3' }, async () => 1)
  assert.equal(layers.sizeOfAll([one, two, one], [builtIn]), 111)
  assert.equal(layers.sizeOfAll([one], []), 1110)
  assert.equal(layers.sizeOfAll([], [builtIn]), 0)
})

test('of two that did the same, the newer one is found', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers, clock } = await open(folder.path)
  await layers.add({ below: 'sha', key: 'k' }, fill('old'))
  clock.nowMs = 1
  const newer = await layers.add({ below: 'sha', key: 'k' }, fill('new'))
  assert.equal(await layers.find('k'), newer)
  assert.equal(await (await open(folder.path)).layers.find('k'), newer)
})

test('a layer that fails half way is none, and leaves nothing', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers } = await open(folder.path)
  const half = async (dir: string): Promise<number> => {
    await fill('half')(dir)
    throw new Error('full')
  }
  await assert.rejects(layers.add({ below: 'sha', key: 'k' }, half), /full/)
  assert.deepEqual(await readdir(folder.path), [])
})

test('half-made layers go; layers whose record is missing or damaged stay and are refused', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers } = await open(folder.path)
  const whole = await layers.add({ below: 'sha', key: 'k' }, fill('whole'))
  const damaged = await layers.add({ below: whole, key: 'k2' }, fill('damaged'))
  const above = await layers.add({ below: damaged, key: 'k3' }, fill('above'))
  await writeFile(join(folder.path, `${damaged}.json`), '{"below"')
  await mkdir(join(folder.path, '.shalf'))
  await mkdir(join(folder.path, 'snorecord'))
  await writeFile(join(folder.path, 'snofolder.json'), '{}')
  const { layers: again } = await open(folder.path)
  const kept = [whole, damaged, above].flatMap((name) => [name, `${name}.json`])
  assert.deepEqual((await readdir(folder.path)).toSorted(), [...kept, 'snorecord'].toSorted())
  assert.deepEqual(
    again
      .listQuarantined()
      .map(({ path }) => basename(path))
      .toSorted(),
    [damaged, 'snorecord'].toSorted(),
  )
  assert.equal(await again.find('k'), whole)
  assert.throws(() => again.chain(above), { reason: 'record_unreadable' })
})

test('layers without users are removed when no build has used them for a day', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers, removed, clock } = await open(folder.path)
  const below = await layers.add({ below: 'sha', key: 'k1' }, fill('1'))
  const used = await layers.add({ below, key: 'k2' }, fill('2'))
  const unused = await layers.add({ below, key: 'k3' }, fill('3'))
  const recent = await layers.add({ below, key: 'k4' }, fill('4'))
  await layers.sweep(new Set([used]), day - 1)
  assert.deepEqual(removed, [])
  clock.nowMs = day
  await layers.find('k4')
  await layers.sweep(new Set([used]), day)
  assert.deepEqual(removed, [unused])
  assert.equal(await layers.find('k3'), undefined)
  const left = [below, used, recent].flatMap((name) => [name, `${name}.json`])
  assert.deepEqual((await readdir(folder.path)).toSorted(), left.toSorted())
})

test('a layer that a fetch relies on stays, with all below, though no record names it yet', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers, removed, clock } = await open(folder.path)
  const below = await layers.add({ below: 'sha', key: 'k1' }, fill('1'))
  const fetched = await layers.add({ below, key: 'k2' }, fill('2'))
  clock.nowMs = day
  assert.deepEqual([layers.use(fetched), layers.use('smissing')], [true, false])
  await layers.sweep(new Set(), day)
  assert.deepEqual(removed, [])
})

test('the lowest layer of an image lies over nothing', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers } = await open(folder.path)
  const lowest = await layers.add({ below: undefined, key: 'k' }, fill('1'))
  assert.deepEqual(layers.chain(lowest), [join(folder.path, lowest)])
  assert.deepEqual((await open(folder.path)).layers.chain(lowest), [join(folder.path, lowest)])
})

test('a layer that a build adds during a sweep is not removed', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-steps-'))
  const { layers, clock } = await open(folder.path)
  await layers.add({ below: 'sha', key: 'old' }, fill('old'))
  clock.nowMs = day
  const swept = layers.sweep(new Set(), day)
  const added = await layers.add({ below: 'sha', key: 'new' }, fill('new'))
  await swept
  assert.equal(await layers.find('new'), added)
  assert.equal(await layers.find('old'), undefined)
})
