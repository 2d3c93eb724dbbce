import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodeOf } from './exit-code.ts'

const cases = [
  [{ exited: true, exitCode: 0, status: 'exit status 0' }, 0],
  [{ exited: true, exitCode: 127, status: 'exit status 127' }, 127],
  [{ exited: false, exitCode: -1, status: 'signal: killed' }, 137],
  [{ exited: false, exitCode: -1, status: 'signal: segmentation fault (core dumped)' }, 139],
  [{ exited: false, exitCode: -1, status: 'signal: signal 34' }, 162],
  [{ exited: false, exitCode: -1, status: 'signal: CPU time limit exceeded' }, 152],
  [{ exited: false, exitCode: -1, status: 'something new' }, 1],
] as const

for (const [end, code] of cases) {
  test(`a process that ends with "${end.status}" gives exit code ${code}`, () => {
    assert.equal(exitCodeOf(end), code)
  })
}
