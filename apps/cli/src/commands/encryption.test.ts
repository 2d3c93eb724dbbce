import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'
import { setupCloud } from '../sim/setup.ts'

test('an operator replaces the encryption key, and learns which keys are still needed', async (t) => {
  const { cloud, env: plain } = await setupCloud(t)
  const env = { ...plain, ATOLL_API_KEY: '', ATOLL_ADMIN_TOKEN: cloud.adminToken }
  const { code, stdout, stderr } = await runProgram(['encryption', 'rotate'], env)
  assert.deepEqual([code, stdout], [0, 'New key bb: 5 records were encrypted again.\n'])
  assert.match(stderr, /1 records could not be read[^]*: aa\./)
  const json = await runProgram(['encryption', 'rotate', '--json'], env)
  assert.equal(JSON.parse(json.stdout).currentKeyID, 'bb')
})

test('without the token of operators, the command says what to set', async (t) => {
  const { run, cloud } = await setupCloud(t)
  const { code, stderr } = await run(['encryption', 'rotate'])
  assert.deepEqual([code, cloud.requests], [1, []])
  assert.match(stderr, /set ATOLL_ADMIN_TOKEN/)
})
