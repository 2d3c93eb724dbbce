import assert from 'node:assert/strict'
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openLogFile } from './log-file.ts'

test('a log is appended to, and past its limit makes way once', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-log-'))
  t.after(() => rm(dir, { recursive: true }))
  const path = join(dir, 'logs', 'server.log')
  const first = openLogFile(path, 20)
  first.write('1234567890\n')
  first.close()
  const log = openLogFile(path, 20)
  for (const line of ['second\n', 'third is longer\n', 'fourth is longer\n']) log.write(line)
  log.close()
  assert.deepEqual(
    [await readFile(path, 'utf8'), await readFile(`${path}.1`, 'utf8')],
    ['fourth is longer\n', 'third is longer\n'],
  )
  assert.equal((await readdir(join(dir, 'logs'))).length, 2)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
})
