import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { installProgram } from './deploy/debian-program.ts'

test('systemd accepts the unit of `atoll service install` without a remark', async () => {
  const analyze = await installProgram('/usr/bin/systemd-analyze', 'systemd')
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-unit-'))
  const main = join(import.meta.dirname, '../apps/cli/src/main.ts')
  const unit = await run(process.execPath, [main, 'service', 'install', '--print'])
  const path = join(folder.path, 'atoll.service')
  const verify = async (text: string) => {
    await writeFile(path, text)
    const { code, stdout, stderr } = await tryRun(analyze, ['verify', path])
    return { code, output: stdout + stderr }
  }
  assert.deepEqual(await verify(unit), { code: 0, output: '' })
  const misspelt = await verify(unit.replace('KillMode=process', 'KillMode=proces'))
  assert.match(misspelt.output, /proces/)
})
