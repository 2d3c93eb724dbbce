import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lockFolder } from './folder-lock.ts'

test('the second waits, reports it, and continues when the first is done', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-lock-'))
  try {
    const events: string[] = []
    const first = await lockFolder(dir, { onWait: () => events.push('first waits') })
    const told = Promise.withResolvers<void>()
    const second = lockFolder(dir, { onWait: told.resolve }).then((lock) => {
      events.push('second holds')
      return lock
    })
    await told.promise
    events.push('first releases it')
    await first[Symbol.asyncDispose]()
    await (await second)[Symbol.asyncDispose]()
    assert.deepEqual(events, ['first releases it', 'second holds'])
  } finally {
    await rm(dir, { recursive: true })
  }
})

test('waiting ends with the reason of the signal', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-lock-'))
  try {
    await using _held = await lockFolder(dir, { onWait: () => {} })
    const reason = new Error('enough')
    const stop = new AbortController()
    const waiting = lockFolder(dir, { onWait: () => stop.abort(reason), signal: stop.signal })
    await assert.rejects(waiting, reason)
  } finally {
    await rm(dir, { recursive: true })
  }
})
