import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { endlessWaits, hasDeadChild, isEndlessWait } from './gvisor-lost-answers.ts'

const futex = process.arch === 'arm64' ? '98' : '202'

test('a wait for another process without a limit is told from all others', () => {
  const call = (line: string) => isEndlessWait(`${line} 0x0 0x0 0xc000865990 0x40714e`)
  assert.ok(call(`${futex} 0x7fad2adf3000 0x0 0x199 0x0`))
  assert.ok(!call(`${futex} 0x20e5c60 0x80 0x0 0x0`), 'for a thread of its own')
  assert.ok(!call(`${futex} 0x7f79ca000f68 0x0 0x0 0xc0008dfc58`), 'with a limit')
  assert.ok(!call('271 0xc0000cd6f0 0x0 0x0 0x0'), 'another call')
  for (const line of ['running', '', '-1 0x7ffe 0x40']) assert.ok(!isEndlessWait(line))
})

test('a child that is dead shows as long as its parent does not take note', async (t) => {
  const quiet = spawn('sleep', ['1000'])
  const parent = spawn('sh', ['-c', 'sleep 0 & exec sleep 1000'])
  t.after(() => [quiet, parent].map((child) => child.kill()))
  await waitFor('the child to die', () => hasDeadChild(parent.pid ?? 0))
  assert.ok(!hasDeadChild(quiet.pid ?? 0))
  assert.deepEqual(endlessWaits(parent.pid ?? 0), [])
})

test('a process that is gone waits for nothing', () => {
  assert.ok(!hasDeadChild(2 ** 22 + 1))
  assert.deepEqual(endlessWaits(2 ** 22 + 1), [])
})
