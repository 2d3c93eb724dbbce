import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'

test('where nothing ever ran there is nothing to end', async () => {
  const outcome = await runProgram(['down'], { ATOLL_DATA_DIR: '/nonexistent/atoll' })
  assert.deepEqual(outcome, {
    code: 0,
    stdout: 'nothing to end: there is no /nonexistent/atoll\n',
    stderr: '',
  })
})

test('a data directory that is not absolute is refused before anything is touched', async () => {
  const { code, stderr } = await runProgram(['down'], { ATOLL_DATA_DIR: 'here' })
  assert.equal(code, 1)
  assert.match(stderr, /must be an absolute path\n.*ATOLL_DATA_DIR/)
})
