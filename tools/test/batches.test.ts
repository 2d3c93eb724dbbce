import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { toBatches } from './batches.ts'

async function batchesOf(t: TestContext, files: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), 'atoll-batches-'))
  t.after(() => rm(root, { recursive: true }))
  for (const [path, code] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), code)
  }
  return toBatches(root, Object.keys(files), ['apps/a', 'apps/b'])
}

test('only files of one package share a process, and only of the packages that were named', async (t) => {
  const paths = ['apps/a/x', 'apps/b/y', 'apps/a/deep/z', 'apps/c/x', 'apps/c/y', 'apps/b/z']
  assert.deepEqual(await batchesOf(t, Object.fromEntries(paths.map((path) => [path, '']))), [
    ['apps/a/x', 'apps/a/deep/z'],
    ['apps/b/y', 'apps/b/z'],
    ['apps/c/x'],
    ['apps/c/y'],
  ])
})

test('a long list is divided evenly', async (t) => {
  const paths = Array.from({ length: 25 }, (_, index) => `apps/a/${index + 10}.test.ts`)
  const batches = await batchesOf(t, Object.fromEntries(paths.map((path) => [path, ''])))
  assert.deepEqual(batches.flat(), paths)
  assert.deepEqual(
    batches.map(({ length }) => length),
    [8, 8, 9],
  )
})

for (const code of [
  `t.mock.timers.enable({ apis: ['setTimeout'] })`,
  `process.env['PATH'] = folder`,
  `process.chdir(folder)`,
  `process.once('SIGTERM', end)`,
  `process.memoryUsage().rss`,
  `await measureCpuMs(work)`,
  `globalThis.fetch = refuse`,
]) {
  test(`a file with ${code} has a process for itself`, async (t) => {
    const files = { 'apps/a/x.test.ts': code, 'apps/a/y.test.ts': '', 'apps/a/z.test.ts': '' }
    assert.deepEqual(await batchesOf(t, files), [
      ['apps/a/y.test.ts', 'apps/a/z.test.ts'],
      ['apps/a/x.test.ts'],
    ])
  })
}

test('a file that only reads its environment shares a process', async (t) => {
  const files = {
    'apps/a/x.test.ts': `if (process.env['PATH'] === '') fail()`,
    'apps/a/y.test.ts': '',
  }
  assert.equal((await batchesOf(t, files)).length, 1)
})
