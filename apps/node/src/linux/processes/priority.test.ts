import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { getPriority, setPriority } from 'node:os'
import { test } from 'node:test'
import { shareOwnPriority } from './priority.ts'
import { threadsOf } from './threads.ts'

test('every thread of a process gets the priority of this one', async (t) => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume(); console.log()'])
  t.after(() => child.kill())
  await once(child.stdout, 'data')
  const { pid = 0 } = child
  const own = getPriority()
  const lower = Math.min(own + 5, 19)
  const priorities = () => new Set(threadsOf(pid).map((thread) => getPriority(Number(thread))))
  assert.ok(threadsOf(pid).length > 1)
  for (const thread of threadsOf(pid)) setPriority(Number(thread), lower)
  assert.deepEqual(priorities(), new Set([lower]))
  shareOwnPriority({ pid })
  assert.deepEqual(priorities(), new Set([own]))
})

test('a process that is gone is left alone', () => {
  shareOwnPriority({ pid: 2 ** 22 + 1 })
})
