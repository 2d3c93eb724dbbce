import assert from 'node:assert/strict'
import {
  lstat,
  mkdir,
  mkdtempDisposable,
  readFile,
  readlink,
  readdir,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ReadEntry } from '../tar/read.ts'
import { extractInto, staysInside } from './extract.ts'

type TestEntry = Partial<ReadEntry> & { readonly path: string; readonly content?: string }

async function setup() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-extract-'))
  const root = join(folder.path, 'root')
  await mkdir(root)
  const warnings: string[] = []
  const extract = async (entries: readonly TestEntry[], limits = {}) => {
    const options = {
      limitBytes: 1000,
      limitEntries: 10,
      warn: (text: string) => warnings.push(text),
    }
    const extraction = extractInto(root, { ...options, ...limits })
    try {
      for (const { content = '', ...entry } of entries) {
        const whole = {
          kind: 'file',
          mode: 0o644,
          sizeBytes: content.length,
          linkTarget: '',
        } as const
        await extraction.begin({ ...whole, ...entry })
        if ((entry.kind ?? 'file') !== 'file') continue
        await extraction.data(Buffer.from(content))
        await extraction.end()
      }
      await extraction.finish()
    } finally {
      await extraction.close()
    }
  }
  const dispose = () => folder[Symbol.asyncDispose]()
  return { outside: folder.path, root, warnings, extract, [Symbol.asyncDispose]: dispose }
}

test('files, folders and inner links are written', async () => {
  await using made = await setup()
  await made.extract([
    { path: './', kind: 'directory' },
    { path: './a/b', content: 'deep', mode: 0o4755 },
    { path: './link', kind: 'symlink', linkTarget: 'a/b' },
    { path: './same', kind: 'hardlink', linkTarget: './a/b' },
  ])
  assert.equal(await readFile(join(made.root, 'a/b'), 'utf8'), 'deep')
  assert.equal((await lstat(join(made.root, 'a/b'))).mode & 0o7777, 0o755)
  assert.equal(await readlink(join(made.root, 'link')), 'a/b')
  assert.equal(await readFile(join(made.root, 'same'), 'utf8'), 'deep')
})

for (const path of ['../x', 'a/../../x', '/x', 'a/..', '', '.', 'a\0b', 'x'.repeat(5000)]) {
  test(`the path ${JSON.stringify(path.slice(0, 20))} ends the copy`, async () => {
    await using made = await setup()
    await assert.rejects(made.extract([{ path, content: 'evil' }]), /leaves the target folder/)
    assert.deepEqual(await readdir(made.outside), ['root'])
  })
}

test('nothing is written through links, whether they come with the archive or were there before', async () => {
  await using made = await setup()
  await made.extract([
    { path: 'up', kind: 'symlink', linkTarget: '..' },
    { path: 'up/x', content: 'into a folder of this name' },
  ])
  assert.deepEqual(await readdir(made.outside), ['root'])
  await symlink(made.outside, join(made.root, 'old'))
  await assert.rejects(made.extract([{ path: 'old/x' }]), /in the way/)
  await assert.rejects(made.extract([{ path: 'old' }]), /in the way/)
  await writeFile(join(made.outside, 'victim'), 'safe')
  await symlink(join(made.outside, 'victim'), join(made.root, 'file'))
  await assert.rejects(made.extract([{ path: 'file', content: 'evil' }]), /in the way/)
  await assert.rejects(
    made.extract([{ path: 'hard', kind: 'hardlink', linkTarget: 'file' }]),
    /leaves the target folder/,
  )
  assert.equal(await readFile(join(made.outside, 'victim'), 'utf8'), 'safe')
})

test('devices and links to the outside are skipped with a warning', async () => {
  await using made = await setup()
  await made.extract([
    { path: 'device', kind: 'other' },
    { path: 'away', kind: 'symlink', linkTarget: '/etc' },
  ])
  assert.deepEqual(await readdir(made.root), [])
  assert.equal(made.warnings.length, 2)
})

test('size and number of entries are limited', async () => {
  await using made = await setup()
  await assert.rejects(
    made.extract([{ path: 'a', content: 'x'.repeat(1001) }]),
    /more than 1000 bytes/,
  )
  const many = Array.from({ length: 11 }, (_, index) => ({ path: `f${index}` }))
  await assert.rejects(made.extract(many), /more than 10 entries/)
})

const links = [
  [0, 'a', true],
  [0, './a/b', true],
  [0, '..', false],
  [1, '..', true],
  [1, '../a', true],
  [1, '../../a', false],
  [2, 'a/../b', false],
  [0, '/etc', false],
  [0, '', false],
] as const

for (const [depth, target, isInside] of links) {
  test(`a link to ${JSON.stringify(target)} at depth ${depth} is ${isInside ? 'kept' : 'skipped'}`, () => {
    assert.equal(staysInside(depth, target), isInside)
  })
}
