import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyProgram, hashProgram } from './program-files.ts'

test('a program is copied without its tests, and its hash follows the content', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-program-'))
  const from = join(folder.path, 'from')
  await mkdir(join(from, 'server/parts'), { recursive: true })
  await writeFile(join(from, 'server/main.py'), 'print(1)', { mode: 0o600 })
  await writeFile(join(from, 'server/parts/a.ts'), 'a')
  await writeFile(join(from, 'server/parts/a.test.ts'), 'test')
  const program = { from, folders: ['server'], to: 'opt/it' }
  const root = join(folder.path, 'root')
  assert.equal(await copyProgram(program, root), 9)
  assert.deepEqual((await readdir(join(root, 'opt/it'), { recursive: true })).toSorted(), [
    'server',
    'server/main.py',
    'server/parts',
    'server/parts/a.ts',
  ])
  assert.equal((await stat(join(root, 'opt/it/server/main.py'))).mode & 0o777, 0o644)
  const before = await hashProgram(program)
  await writeFile(join(from, 'server/parts/a.test.ts'), 'another test')
  assert.equal(await hashProgram(program), before)
  await writeFile(join(from, 'server/parts/a.ts'), 'b')
  assert.notEqual(await hashProgram(program), before)
})
