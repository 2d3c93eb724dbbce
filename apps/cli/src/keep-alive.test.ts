import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { keepAlive } from './keep-alive.ts'

test('it extends again and again, past failures of the server, until it is told to stop', async () => {
  let calls = 0
  const stop = new AbortController()
  const kept = keepAlive(
    async () => {
      calls += 1
      if (calls === 1) throw new Fault('unavailable', 'no_server', 'away for a moment')
    },
    1,
    stop.signal,
  )
  await waitFor('three calls', () => calls >= 3)
  stop.abort()
  await kept
})

test('a failure nobody foresaw is not swallowed', async () => {
  const broken = () => Promise.reject(new TypeError('a bug'))
  await assert.rejects(keepAlive(broken, 1, new AbortController().signal), /a bug/)
})
