import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { codeInterpreter } from './code-interpreter.ts'
import { sweepDeadBuilds } from './debian-layer.ts'
import { lockFolder } from './folder-lock.ts'

const recipe = codeInterpreter.debian
const workFolders = async (dir: string) =>
  (await readdir(dir)).filter((name) => name.startsWith('.tmp-'))

const program = (layersDir: string) => `
  import { codeInterpreter } from '${import.meta.dirname}/code-interpreter.ts'
  import { ensureDebianLayer } from '${import.meta.dirname}/debian-layer.ts'
  const progress = (label, fraction) => fraction > 0 && console.log('progress')
  await ensureDebianLayer(codeInterpreter.debian, { layersDir: '${layersDir}', progress })`

test('leftovers of a killed install are removed, unless another install is running', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-layers-'))
  const dir = folder.path
  const args = ['--input-type=module', '--eval', program(dir)]
  const builder = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true, // a process group, to end its commands at the end
  })
  await using _commands = { [Symbol.asyncDispose]: async () => endGroup(builder.pid) }
  await once(builder.stdout, 'data')
  await sweepDeadBuilds(recipe, dir)
  assert.equal((await workFolders(dir)).length, 1)
  builder.kill('SIGKILL')
  await once(builder, 'close')
  await waitFor('the leftovers to be removed', async () => {
    await sweepDeadBuilds(recipe, dir)
    return (await workFolders(dir)).length === 0
  })
  // The lock is free for the next install.
  const lock = { file: '.lock-code-interpreter', onWait: () => {} }
  await using _lock = await lockFolder(dir, lock)
})

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All commands have ended.
  }
}
