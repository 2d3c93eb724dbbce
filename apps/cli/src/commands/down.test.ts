import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'

test('without a data directory there is nothing to stop', async () => {
  const outcome = await runProgram(['down'], { ATOLL_DATA_DIR: '/nonexistent/atoll' })
  assert.deepEqual(outcome, {
    code: 0,
    stdout: 'nothing to stop: /nonexistent/atoll does not exist\n',
    stderr: '',
  })
})

test('a relative data directory is refused', async () => {
  const { code, stderr } = await runProgram(['down'], { ATOLL_DATA_DIR: 'here' })
  assert.equal(code, 1)
  assert.match(stderr, /must be an absolute path\n.*ATOLL_DATA_DIR/)
})
