import assert from 'node:assert/strict'
import {
  appendFile,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { lazyLibc } from '../../linux/libc.ts'
import { fileMetadata } from './file-metadata.ts'

const libc = lazyLibc()

async function setup(base: string, withoutAttributes: boolean) {
  const folder = await mkdtemp(join(base, 'atoll-metadata-'))
  const options = {
    libc,
    folder: join(folder, 'journal'),
    bootIdFile: join(folder, 'run/life'),
    withoutAttributes,
  }
  const open = async () => {
    const store = fileMetadata(options)
    await store.resume()
    return {
      ...store,
      async of(name: string) {
        const path = join(folder, name)
        return store.read(path, await lstat(path, { bigint: true }))
      },
    }
  }
  let store = await open()
  return {
    folder,
    options,
    path: (name: string) => join(folder, name),
    store: () => store,
    async write(name: string, metadata: Record<string, string>) {
      await writeFile(join(folder, name), 'content')
      await store.replace(join(folder, name), metadata)
    },
    async restart() {
      await store.close()
      store = await open()
    },
    async [Symbol.asyncDispose]() {
      await store.close()
      await rm(folder, { recursive: true })
    },
  }
}

const places: [string, string, boolean][] = [
  ['in attributes on a disk', tmpdir(), false],
  ['in attributes in memory', '/dev/shm', false],
  ['in a journal on a disk', tmpdir(), true],
  ['in a journal in memory', '/dev/shm', true],
]

for (const [where, base, without] of places) {
  test(`metadata ${where} belongs to the file, not to its name`, async (t) => {
    await using files = await setup(base, without)
    const given = { author: 'ann', 'a key': 'a value, with ~ and "' }
    await files.write('a', given)

    await t.test('is stored as given', async () => {
      assert.deepEqual(await files.store().of('a'), given)
    })
    await t.test('follows a rename by any program', async () => {
      await run('mv', [files.path('a'), files.path('b')])
      assert.deepEqual(await files.store().of('b'), given)
    })
    await t.test('follows a rename of the folder', async () => {
      await mkdir(files.path('one'))
      await files.write('one/f', { in: 'one' })
      await run('mv', [files.path('one'), files.path('two')])
      assert.deepEqual(await files.store().of('two/f'), { in: 'one' })
    })
    await t.test('survives a write in place', async () => {
      await appendFile(files.path('b'), 'more')
      assert.deepEqual(await files.store().of('b'), given)
    })
    await t.test('is replaced as a whole', async () => {
      await files.store().replace(files.path('b'), { other: '1' })
      assert.deepEqual(await files.store().of('b'), { other: '1' })
    })
    await t.test('is absent from a recreated file', async () => {
      const { ino } = await stat(files.path('b'))
      await rm(files.path('b'))
      // An inode number is reused sooner or later; the new file must not inherit the old metadata.
      for (let again = 0; again < 50; again += 1) {
        await writeFile(files.path('b'), '')
        assert.deepEqual(await files.store().of('b'), {})
        if ((await stat(files.path('b'))).ino === ino) break
        await rm(files.path('b'))
      }
    })
    await t.test('is absent after a file without metadata replaces the file', async () => {
      await files.write('c', { c: '1' })
      await writeFile(files.path('plain'), '')
      await rename(files.path('plain'), files.path('c'))
      assert.deepEqual(await files.store().of('c'), {})
    })
    await t.test('is set through a symlink, which itself has none', async () => {
      await writeFile(files.path('target'), '')
      await symlink('target', files.path('link'))
      await files.store().replace(files.path('link'), { by: 'link' })
      assert.deepEqual(await files.store().of('target'), { by: 'link' })
      assert.deepEqual(await files.store().of('link'), {})
    })
    await t.test('is ignored for a deleted file', async () => {
      await files.store().replace(files.path('gone'), { a: '1' })
    })
    await t.test('is cleared by an empty set', async () => {
      await files.store().replace(files.path('target'), {})
      assert.deepEqual(await files.store().of('target'), {})
    })
    await t.test('survives a restart', async () => {
      await files.write('d', { d: '1' })
      await files.restart()
      assert.deepEqual(await files.store().of('d'), { d: '1' })
    })
  })
}

test('inode metadata is found by path after a reboot of the sandbox', async () => {
  await using files = await setup(tmpdir(), true)
  await files.write('kept', { a: '1' })
  await files.write('moved', { b: '2' })
  await files.write('gone', { c: '3' })
  await rename(files.path('moved'), files.path('elsewhere'))
  files.store().handleMove(files.path('moved'), files.path('elsewhere'))
  await rm(files.path('gone'))
  await rm(files.options.bootIdFile)
  await files.restart()
  assert.deepEqual(await files.store().of('kept'), { a: '1' })
  assert.deepEqual(await files.store().of('elsewhere'), { b: '2' })
})

test('a file replaced while envd was down has no metadata', async () => {
  await using files = await setup(tmpdir(), true)
  await files.write('a', { a: '1' })
  await files.store().close()
  await writeFile(files.path('fresh'), '')
  await rename(files.path('fresh'), files.path('a'))
  await files.restart()
  assert.deepEqual(await files.store().of('a'), {})
})

test('the journal is readable by root only and stays small', async () => {
  await using files = await setup(tmpdir(), true)
  for (let n = 0; n < 300; n += 1) await files.write('a', { value: String(n).repeat(300) })
  const journal = join(files.options.folder, 'metadata.jsonl')
  const { mode, size } = await stat(journal)
  assert.equal(mode & 0o777, 0o600)
  assert.ok(size < 100_000, `${size} bytes`)
})

test('a damaged journal loses only the damaged records', async () => {
  await using files = await setup(tmpdir(), true)
  await files.write('a', { a: '1' })
  const journal = join(files.options.folder, 'metadata.jsonl')
  await appendFile(
    journal,
    'null\n[]\n{"key":5}\n{"key":"1:1","path":"/x","metadata":{"a":5}}\n{"ke',
  )
  await files.restart()
  assert.deepEqual(await files.store().of('a'), { a: '1' })
  await files.write('b', { b: '1' })
  await files.restart()
  assert.deepEqual(await files.store().of('b'), { b: '1' })
  assert.ok(!(await readFile(journal, 'utf8')).includes('"/x"'))
})

test('foreign attributes are read if they are UTF-8, up to a limit', async () => {
  await using files = await setup('/dev/shm', false)
  await files.write('a', { mine: '1' })
  await run('python3', ['-c', hostile, files.path('a')])
  const found = await files.store().of('a')
  assert.equal(found['mine'] ?? '1', '1')
  assert.equal(found['bad'], undefined)
  assert.ok(JSON.stringify(found).length < 70_000)
})

const hostile = `
import os, sys
os.setxattr(sys.argv[1], 'user.other', b'x')
os.setxattr(sys.argv[1], 'user.e2b.bad', bytes([0xff, 0xfe]))
os.setxattr(sys.argv[1], b'user.e2b.\\xff', b'x')
for n in range(3): os.setxattr(sys.argv[1], 'user.e2b.k%d' % n, b'v' * 30000)
`
