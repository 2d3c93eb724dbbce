import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { listSources, structureRules } from './structure.ts'
import { readStyle } from './style-report.ts'

const repository = join(import.meta.dirname, '..')

test('comments, texts, long files, long functions, crowded folders and type-only cycles are found', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'atoll-style-'))
  t.after(() => rm(root, { recursive: true }))
  await symlink(join(repository, 'node_modules'), join(root, 'node_modules'))
  const folder = join(root, 'apps/api/src')
  await mkdir(folder, { recursive: true })
  for (const name of ['packages', 'tests', 'bench', 'tools']) await mkdir(join(root, name))
  const write = (name: string, text: string) => writeFile(join(folder, name), text)
  await write('long-file.ts', `${'\n'.repeat(400)}export const x = 1\n`)
  const body = '  call()\n'.repeat(120)
  await write('long-function.ts', `/** Calls. */\nexport function callAll(call) {\n${body}}\n`)
  await write('long.test.ts', `describe('all', () => {\n${body}})\n`)
  await write('a.ts', "import type { B } from './b.ts'\nexport type A = B | 1 // A comment.\n")
  await write('b.ts', "import type { A } from './a.ts'\nexport type B = '// no comment' | A[]\n")
  await write(
    'text.ts',
    "export const x = ['two words', 'a text of words', `more than ${1} told`]\n",
  )
  for (let index = 0; index < 21; index += 1) await write(`small-${index}.ts`, 'export {}\n')

  const report = await readStyle(root)
  assert.deepEqual(
    report.comments.map(({ path, line, text }) => `${path}:${line} ${text}`).toSorted(),
    ['apps/api/src/a.ts:2 A comment.', 'apps/api/src/long-function.ts:1 Calls.'],
  )
  assert.deepEqual(
    report.texts.map(({ path, message }) => `${path} ${message}`),
    ['apps/api/src/text.ts a text of words'],
  )
  const found = structureRules(report, listSources(root)).map(({ name, findings }) => [
    name,
    findings.map(({ path }) => path).toSorted(),
  ])
  assert.deepEqual(Object.fromEntries(found), {
    'file over 400 lines': ['apps/api/src/long-file.ts'],
    'function over 120 lines': ['apps/api/src/long-function.ts'],
    'function over 60 lines': ['apps/api/src/long-function.ts'],
    'folder over 25 source files': ['apps/api/src'],
    'import cycle': ['apps/api/src/a.ts', 'apps/api/src/b.ts'],
  })
})
