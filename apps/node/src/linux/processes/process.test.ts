import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { uptime } from 'node:os'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { ageNsOf, identify, isStopped, killIfAlive } from './process.ts'

test('the age of a process is the time since its start', () => {
  const us = identify(process.pid) ?? assert.fail('we do not seem to run')
  const atLeast = process.uptime()
  const seconds = Number(ageNsOf(us)) / 1e9
  // Node.js counts uptime from slightly after the process start; ticks are 10 ms.
  assert.ok(seconds > atLeast - 0.03 && seconds < atLeast + 30, `${seconds} s, not ${atLeast} s`)
})

test('a process of the future is new', () => {
  const ticks = Math.round((uptime() + 100) * 100)
  assert.equal(ageNsOf({ pid: 1, started: `boot:${ticks}` }), 0n)
})

test('a process that a signal stopped is told from one that sleeps, and from one of the same id', async (t) => {
  const child = spawn('sleep', ['1000'])
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const identity = identify(child.pid ?? 0) ?? assert.fail('it does not seem to run')
  assert.equal(isStopped(identity), false)
  child.kill('SIGSTOP')
  await waitFor('the process to be stopped', () => isStopped(identity))
  assert.equal(isStopped({ ...identity, started: 'before' }), false)
  killIfAlive({ ...identity, started: 'before' })
  child.kill('SIGCONT')
  await waitFor('the process to go on', () => !isStopped(identity))
  assert.ok(identify(identity.pid))
  killIfAlive(identity)
  await once(child, 'exit')
  assert.equal(isStopped(identity), false)
})
