import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toProcessEnd } from '../domain/process/process-end.ts'
import { createExitedProcesses } from './exited-processes.ts'

const end = toProcessEnd({ by: 'exit', code: 0 })

test('the number of remembered processes is bounded', () => {
  const exited = createExitedProcesses(() => 0)
  for (let pid = 1; pid <= 1001; pid++) exited.add({ pid, end })
  assert.equal(
    exited.find(({ pid }) => pid === 1),
    undefined,
  )
  assert.equal(exited.find(({ pid }) => pid === 2)?.pid, 2)
})

test('a reused pid or tag drops the old process', () => {
  const exited = createExitedProcesses(() => 0)
  exited.add({ pid: 1, end })
  exited.add({ pid: 2, tag: 'a', end })
  exited.add({ pid: 3, tag: 'b', end })
  exited.supersede(1, 'a')
  assert.equal(
    exited.find(({ pid }) => pid < 3),
    undefined,
  )
  exited.supersede(9, undefined)
  assert.equal(exited.find(({ tag }) => tag === 'b')?.pid, 3)
})
