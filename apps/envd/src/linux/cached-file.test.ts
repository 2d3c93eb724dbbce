import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { cachedFile } from './cached-file.ts'

async function setup(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'cached-file-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'file')
  const parsed: string[] = []
  const read = cachedFile(path, (text) => {
    parsed.push(text)
    return text.toUpperCase()
  })
  return { folder, path, parsed, read }
}

test('a file is parsed once, and again after it was replaced', async (t) => {
  const { folder, path, parsed, read } = await setup(t)
  await writeFile(path, 'one')
  assert.deepEqual([read(), read(), read()], ['ONE', 'ONE', 'ONE'])
  await writeFile(join(folder, 'next'), 'two')
  await rename(join(folder, 'next'), path)
  assert.deepEqual([read(), read()], ['TWO', 'TWO'])
  assert.deepEqual(parsed, ['', 'one', 'two'])
})

test('a missing file, folder or pipe counts as empty and does not block', async (t) => {
  const { folder, path, read } = await setup(t)
  assert.equal(read(), '')
  execFileSync('mkfifo', [path])
  assert.equal(read(), '')
  await rm(path)
  await symlink(folder, path)
  assert.equal(read(), '')
})

test('only the start of a huge file is read', async (t) => {
  const { path, read } = await setup(t)
  await writeFile(path, 'start')
  await truncate(path, 2 ** 40)
  assert.equal(read().length, 4 * 1024 * 1024)
})
