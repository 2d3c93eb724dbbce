import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { keepAlive } from './keep-alive.ts'

test('extends at every interval, despite faults, until aborted', async () => {
  let calls = 0
  const stop = new AbortController()
  const kept = keepAlive(
    async () => {
      calls += 1
      if (calls === 1) throw new Fault('unavailable', 'no_server', 'no server')
    },
    1,
    stop.signal,
  )
  await waitFor('three calls', () => calls >= 3)
  stop.abort()
  await kept
})

test('an unexpected error is rethrown', async () => {
  const broken = () => Promise.reject(new TypeError('a bug'))
  await assert.rejects(keepAlive(broken, 1, new AbortController().signal), /a bug/)
})
