import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { syncTerminalSize } from './terminal-size-sync.ts'

test('an unchanged size is not sent', async () => {
  const { calls, resize, syncing, stop } = setup()
  resize(24)
  await setImmediate()
  assert.deepEqual(calls, [])
  stop.abort()
  await syncing
})

test('a size that changed before the start is sent', async () => {
  const { calls } = setup({ rows: 30 })
  await waitFor('the size to be sent', () => calls.length === 1)
  assert.equal(calls[0]?.rows, 30)
})

test('sizes are sent one at a time, and only the latest of the waiting ones', async () => {
  const { calls, resize } = setup()
  resize(30)
  await waitFor('the first size to be sent', () => calls.length === 1)
  resize(40)
  resize(50)
  resize(60)
  calls[0]?.answer()
  await waitFor('the last size to be sent', () => calls.length === 2)
  assert.deepEqual(
    calls.map(({ rows }) => rows),
    [30, 60],
  )
})

test('a size that changed back while waiting is not sent again', async () => {
  const { calls, resize } = setup()
  resize(30)
  await waitFor('the first size to be sent', () => calls.length === 1)
  resize(40)
  resize(30)
  calls[0]?.answer()
  await setImmediate()
  assert.equal(calls.length, 1)
})

for (const kind of ['unavailable', 'timeout'] as const) {
  test(`after a fault of kind ${kind} the current size is sent`, async () => {
    const { calls, resize } = setup()
    resize(30)
    await waitFor('the first try', () => calls.length === 1)
    calls[0]?.fail(kind)
    resize(40)
    await waitFor('the next try', () => calls.length === 2)
    assert.equal(calls[1]?.rows, 40)
  })
}

test('a fault because the process has ended is not retried, but the next change is sent', async () => {
  const { calls, resize } = setup()
  resize(30)
  await waitFor('the first try', () => calls.length === 1)
  calls[0]?.fail('not_found')
  resize(40)
  await waitFor('the next change', () => calls.length === 2)
  assert.equal(calls[1]?.rows, 40)
})

test('an unexpected error is rethrown', async () => {
  const { calls, resize, syncing } = setup()
  resize(30)
  await waitFor('the first try', () => calls.length === 1)
  calls[0]?.reject(new TypeError('oops'))
  await assert.rejects(syncing, TypeError)
})

interface SentSize {
  readonly rows: number
  answer(): void
  fail(kind: FaultKind): void
  reject(error: Error): void
}

/** Simulates a terminal of 80 columns. Each sent size waits for the test to answer. */
function setup(start: { readonly rows: number } = { rows: 24 }) {
  let { rows } = start
  const listeners: (() => void)[] = []
  const calls: SentSize[] = []
  const stop = new AbortController()
  const currentSize = () => ({ cols: 80, rows })
  const syncing = syncTerminalSize(
    {
      terminal: {
        size: currentSize,
        onResize: (listener) => listeners.push(() => listener(currentSize())),
      },
      initialSize: { cols: 80, rows: 24 },
      send(size) {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        const fail = (kind: FaultKind) => reject(new Fault(kind, kind, 'refused'))
        calls.push({ rows: size.rows, answer: resolve, fail, reject })
        return promise
      },
    },
    stop.signal,
  )
  const resize = (changed: number) => {
    rows = changed
    for (const listener of listeners) listener()
  }
  return { calls, resize, syncing, stop }
}
