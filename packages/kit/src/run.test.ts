import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run, tryRun } from './run.ts'
import { waitFor } from './wait.ts'

test('programs have English messages, whatever locale the caller passes', async () => {
  assert.equal(await run('printenv', ['LC_ALL']), 'C.UTF-8\n')
  const env = { ...process.env, LC_ALL: 'de_DE.UTF-8', GIVEN: 'yes' }
  assert.equal(await run('printenv', ['LC_ALL', 'GIVEN'], { env }), 'C.UTF-8\nyes\n')
})

test('a program that fails throws its output, or returns it to tryRun', async () => {
  const args = ['-c', 'echo why >&2; exit 3']
  await assert.rejects(run('sh', args), /exit 3: why/)
  const { code, stderr } = await tryRun('sh', args)
  assert.deepEqual([code, stderr], [3, 'why\n'])
})

test('an aborted call waits for children of the program that hold its output, if asked to', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-run-'))
  t.after(() => rm(dir, { recursive: true }))
  const abort = new AbortController()
  const script = '(touch begun; sleep 0.5; touch ended) & wait'
  const running = run('sh', ['-c', script], { cwd: dir, signal: abort.signal, awaitsEnd: true })
  const refused = assert.rejects(running, { name: 'AbortError' })
  await waitFor('the child', async () => existsSync(join(dir, 'begun')))
  abort.abort()
  await refused
  assert.ok(existsSync(join(dir, 'ended')))
  const absent = run('/no/such/program', [], { awaitsEnd: true, timeoutMs: 100 })
  await assert.rejects(absent, { code: 'ENOENT' })
})
