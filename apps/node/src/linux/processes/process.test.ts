import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { uptime } from 'node:os'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { ageNsOf, identify, isStopped, killIfAlive } from './process.ts'

test('the age of a process is the time since its start', () => {
  const own = identify(process.pid) ?? assert.fail('this process has no identity')
  const uptimeSeconds = process.uptime()
  const seconds = Number(ageNsOf(own)) / 1e9
  // Node.js counts uptime from slightly after the process start; ticks are 10 ms.
  assert.ok(
    seconds > uptimeSeconds - 0.03 && seconds < uptimeSeconds + 30,
    `${seconds} s, not ${uptimeSeconds} s`,
  )
})

test('the age of a process with a start time in the future is 0', () => {
  const ticks = Math.round((uptime() + 100) * 100)
  assert.equal(ageNsOf({ pid: 1, started: `boot:${ticks}` }), 0n)
})

test('isStopped and killIfAlive match PID and start time, and isStopped is false for a sleeping process', async (t) => {
  const child = spawn('sleep', ['1000'])
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const identity = identify(child.pid ?? 0) ?? assert.fail('the child process has no identity')
  assert.equal(isStopped(identity), false)
  child.kill('SIGSTOP')
  await waitFor('the process to be stopped', () => isStopped(identity))
  assert.equal(isStopped({ ...identity, started: 'before' }), false)
  killIfAlive({ ...identity, started: 'before' })
  child.kill('SIGCONT')
  await waitFor('the process to continue', () => !isStopped(identity))
  assert.ok(identify(identity.pid))
  killIfAlive(identity)
  await once(child, 'exit')
  assert.equal(isStopped(identity), false)
})
