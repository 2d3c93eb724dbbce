import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createArchive } from './archive.ts'
import { openContext } from './context.ts'

const settings = { owner: '', mode: '', line: 1 }

async function setup(files: Record<string, string>) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-context-'))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(folder.path, name, '..'), { recursive: true })
    await writeFile(join(folder.path, name), content)
  }
  const select = async (sources: readonly string[], target: string) => {
    const context = await openContext(folder.path)
    const { args, entries } = await context.select({ sources, target, ...settings })
    return { args, paths: entries.map(({ path }) => path), entries }
  }
  return { folder, select, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('a file, a folder, a pattern and several sources are laid out for their target', async () => {
  await using context = await setup({ 'a.txt': '1', 'b.txt': '2', 'd/e/f': '3', 'd/.h': '4' })
  const { select } = context
  const file = await select(['./a.txt'], '/x')
  assert.deepEqual([file.args, file.paths], [['a.txt', '/x', 'root', ''], ['a.txt']])
  const folder = await select(['d'], '/x')
  assert.deepEqual(folder.args, ['d', '/x/', 'root', ''])
  assert.deepEqual(folder.paths, ['d', 'd/.h', 'd/e', 'd/e/f'])
  const pattern = await select(['*.txt'], '/x/')
  assert.deepEqual([pattern.args[0], pattern.paths], ['.', ['a.txt', 'b.txt']])
  const several = await select(['a.txt', 'd'], '/x/')
  assert.deepEqual([several.args[0], several.paths], ['.', ['a.txt', '.h', 'e', 'e/f']])
  const all = await select(['.'], '/x')
  assert.deepEqual(all.paths, ['a.txt', 'b.txt', 'd', 'd/.h', 'd/e', 'd/e/f'])
})

test('excluded, missing and outside sources are refused', async () => {
  await using context = await setup({ 'a.env': '1', '.dockerignore': '*.env' })
  await symlink('/etc', join(context.folder.path, 'etc'))
  const { select } = context
  await assert.rejects(select(['a.env'], '/x'), /excluded by \.dockerignore/)
  await assert.rejects(select(['b'], '/x'), /b is not in/)
  await assert.rejects(select(['../x'], '/x'), /outside of the build directory/)
  await assert.rejects(select(['etc/passwd'], '/x'), /outside of the build directory/)
  await assert.rejects(select(['*.env'], '/x'), /is excluded/)
})

test('the hash depends on content and names, not on times', async () => {
  await using context = await setup({ a: '1' })
  const hash = async () => (await createArchive((await context.select(['.'], '/')).entries)).hash
  const first = await hash()
  await utimes(join(context.folder.path, 'a'), 1, 1)
  assert.equal(await hash(), first)
  await writeFile(join(context.folder.path, 'a'), '2')
  assert.notEqual(await hash(), first)
})

test('an archive whose files changed after they were hashed is not sent', async () => {
  await using context = await setup({ a: '1' })
  const archive = await createArchive((await context.select(['a'], '/')).entries)
  await writeFile(join(context.folder.path, 'a'), '2')
  await assert.rejects(Array.fromAsync(archive.chunks()), /changed while they were uploaded/)
  await writeFile(join(context.folder.path, 'a'), 'longer')
  await assert.rejects(Array.fromAsync(archive.chunks()), /changed while it was read/)
})
