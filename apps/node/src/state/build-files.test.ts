import assert from 'node:assert/strict'
import { mkdtempDisposable, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBuildFiles } from './build-files.ts'

const hash = 'ab'.repeat(32)

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}

async function setup() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-files-'))
  const full = { reserveSpace: false }
  const disks = {
    reserveSpace() {
      if (full.reserveSpace) throw new Error('no room')
      return { [Symbol.dispose]() {} }
    },
  }
  const dir = join(folder.path, 'files')
  return Object.assign(folder, { dir, full, disks, files: await openBuildFiles(dir, disks) })
}

test('files are found by their owner alone, once they are whole', async () => {
  await using world = await setup()
  const { files } = world
  assert.equal(await files.find('team', hash), undefined)
  await files.put('team', hash, pieces('one ', 'two'))
  const path = await files.find('team', hash)
  assert.equal(await readFile(path ?? '', 'utf8'), 'one two')
  assert.equal(await files.find('other', hash), undefined)
  await files.put('team', hash, pieces('three'))
  assert.equal(await readFile(path ?? '', 'utf8'), 'three')
})

test('an upload that breaks off leaves what was there', async () => {
  await using world = await setup()
  const { files } = world
  await files.put('team', hash, pieces('whole'))
  const broken = async function* () {
    yield Buffer.from('ha')
    throw new Error('gone')
  }
  await assert.rejects(files.put('team', hash, broken()), /gone/)
  assert.equal(await readFile((await files.find('team', hash)) ?? '', 'utf8'), 'whole')
  assert.equal((await readdir(join(world.path, 'files'))).length, 1)
})

for (const [owner, name] of [
  ['../up', hash],
  ['team', '../../etc/passwd'],
  ['team', hash.toUpperCase()],
] as const) {
  test(`${owner} and ${name.slice(0, 20)} are no names of files`, async () => {
    await using world = await setup()
    await assert.rejects(world.files.find(owner, name))
    await assert.rejects(world.files.put(owner, name, pieces('x')))
  })
}

test('files go that no build has asked for in a day', async () => {
  await using world = await setup()
  const { files } = world
  await files.put('team', hash, pieces('x'))
  const path = (await files.find('team', hash)) ?? ''
  await utimes(path, 1000, 1000)
  // A lookup counts as a use.
  await files.find('team', hash)
  const { mtimeMs } = await stat(path)
  await files.sweep(mtimeMs + 24 * 3600 * 1000)
  assert.ok(await files.find('team', hash))
  await utimes(path, 1000, 1000)
  await files.sweep(1_000_000 + 24 * 3600 * 1000 + 1)
  assert.equal(await files.find('team', hash), undefined)
})

test('an upload that the disk has no room for leaves nothing', async () => {
  await using world = await setup()
  const { files, full } = world
  const large = async function* () {
    yield Buffer.alloc(65 * 1024 * 1024)
    full.reserveSpace = true
    yield Buffer.alloc(65 * 1024 * 1024)
  }
  await assert.rejects(files.put('team', hash, large()), /no room/)
  assert.deepEqual(await readdir(world.dir), [])
  await assert.rejects(files.put('team', hash, pieces('x')), /no room/)
})

test('half-received files of a dead process are removed', async () => {
  await using world = await setup()
  await world.files.put('team', hash, pieces('x'))
  await writeFile(join(world.dir, '.half'), 'ha')
  await openBuildFiles(world.dir, world.disks)
  assert.deepEqual(await readdir(world.dir), [`team-${hash}`])
})
