import assert from 'node:assert/strict'
import {
  chmod,
  mkdir,
  mkdtempDisposable,
  readdir,
  readFile,
  stat,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { desktop } from './desktop.ts'
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

test('a program that can be executed stays so, and its hash follows the mode', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-program-'))
  const from = join(folder.path, 'from')
  await mkdir(join(from, 'bin'), { recursive: true })
  await writeFile(join(from, 'bin/run'), '#!/bin/sh\n', { mode: 0o700 })
  const program = { from, folders: ['bin'], to: '' }
  const root = join(folder.path, 'root')
  await copyProgram(program, root)
  assert.equal((await stat(join(root, 'bin/run'))).mode & 0o777, 0o755)
  const before = await hashProgram(program)
  await chmod(join(from, 'bin/run'), 0o600)
  assert.notEqual(await hashProgram(program), before)
})

test('the library of the desktop is loaded by name and closes all descriptors from a number on', async () => {
  await using root = await mkdtempDisposable(join(tmpdir(), 'atoll-program-'))
  await copyProgram(desktop.program, root.path)
  const { library } = desktop.program
  const listed = await readFile(join(root.path, 'etc/ld.so.preload'), 'utf8')
  assert.equal(listed, `/${library?.to}\n`)
  const code = `
import ctypes, os
kept, closed = os.dup2(0, 10), os.dup2(0, 11)
status = ctypes.CDLL(None).close_range(11, ctypes.c_uint(0xffffffff), 0)
print(status, sorted(int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) >= 10))`
  const env = { ...process.env, LD_PRELOAD: join(root.path, library?.to ?? '') }
  // Descriptor 3 lists the folder.
  assert.equal(await run('python3', ['-c', code], { env }), '0 [10]\n')
})
