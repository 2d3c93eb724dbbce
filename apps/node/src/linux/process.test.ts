import assert from 'node:assert/strict'
import { uptime } from 'node:os'
import { test } from 'node:test'
import { ageNsOf, identify } from './process.ts'

test('the age of a process is the time since its start', () => {
  const us = identify(process.pid) ?? assert.fail('we do not seem to run')
  const atLeast = process.uptime()
  const seconds = Number(ageNsOf(us)) / 1e9
  // Node.js itself counts from a little after the start; ticks are a hundredth of a second.
  assert.ok(seconds > atLeast - 0.03 && seconds < atLeast + 30, `${seconds} s, not ${atLeast} s`)
})

test('a process of the future is new', () => {
  const ticks = Math.round((uptime() + 100) * 100)
  assert.equal(ageNsOf({ pid: 1, started: `boot:${ticks}` }), 0n)
})
