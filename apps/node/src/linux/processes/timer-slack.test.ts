import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimerSlack } from './timer-slack.ts'

test('every thread of a process gets the slack, and loses it again', async (t) => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume(); console.log()'])
  t.after(() => child.kill())
  await once(child.stdout, 'data')
  const { pid = 0 } = child
  for (const slackNs of [7_000_000, 50_000]) {
    setTimerSlack({ pid }, slackNs)
    const threads = await readdir(`/proc/${pid}/task`)
    const slacks = threads.map((thread) => readFile(`/proc/${thread}/timerslack_ns`, 'utf8'))
    assert.ok(threads.length > 1)
    assert.deepEqual(new Set(await Promise.all(slacks)), new Set([`${slackNs}\n`]))
  }
})

test('a process that is gone is left alone', () => {
  setTimerSlack({ pid: 2 ** 22 + 1 }, 50_000)
})
