import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toProcessEnd } from './process-end.ts'

test('a success has no error, a failure repeats its status', () => {
  const ok = { exitCode: 0, exited: true, status: 'exit status 0' }
  assert.deepEqual(toProcessEnd({ by: 'exit', code: 0 }), ok)
  const status = 'exit status 130'
  assert.deepEqual(toProcessEnd({ by: 'exit', code: 130 }), {
    exitCode: 130,
    exited: true,
    status,
    error: status,
  })
})

test('signals have exit code -1 and a name', () => {
  const named = (signal: number) => toProcessEnd({ by: 'signal', signal })
  assert.deepEqual(named(9), {
    exitCode: -1,
    exited: false,
    status: 'signal: killed',
    error: 'signal: killed',
  })
  assert.equal(named(15).status, 'signal: terminated')
  assert.equal(named(40).status, 'signal: signal 40')
})
