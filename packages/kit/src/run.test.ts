import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run, tryRun } from './run.ts'

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
