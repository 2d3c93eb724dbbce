import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { startLoop } from './loop.ts'

function setup(pass: (count: number) => Promise<number>) {
  let count = 0
  const loop = startLoop('test', () => pass(++count), silentLogger)
  return { loop, count: () => count, [Symbol.asyncDispose]: () => loop.close() }
}

test('the first pass begins at once, the next after the time that it returned', async () => {
  await using loop = setup(async () => 1)
  await waitFor('three passes', () => loop.count() >= 3)
})

test('a nudge begins a pass long before the timer would', async () => {
  await using loop = setup(async () => 600_000)
  await loop.loop.first
  loop.loop.nudge()
  await waitFor('a second pass', () => loop.count() === 2)
})

test('nudges during a pass cause one more pass, and two never run at once', async () => {
  const gate = Promise.withResolvers<void>()
  let inside = 0
  let most = 0
  await using loop = setup(async (count) => {
    most = Math.max(most, ++inside)
    if (count === 1) await gate.promise
    inside--
    return 600_000
  })
  for (const _ of Array(5)) loop.loop.nudge()
  assert.equal(loop.count(), 1)
  gate.resolve()
  await waitFor('the pass that was asked for', () => loop.count() === 2 && inside === 0)
  assert.equal(most, 1)
})

test('a pass that fails is tried again', async () => {
  await using loop = setup(async (count) => {
    if (count === 1) throw new Error('simulated')
    return 600_000
  })
  await loop.loop.first
  await waitFor('another try', () => loop.count() === 2)
})

test('close waits for the pass under way and begins no other', async () => {
  const gate = Promise.withResolvers<void>()
  const { loop, count } = setup(async () => {
    await gate.promise
    return 0
  })
  loop.nudge()
  const closed = loop.close()
  gate.resolve()
  await closed
  loop.nudge()
  assert.equal(count(), 1)
})

test('a pass does not belong to the request that nudged it', async () => {
  const request = new AsyncLocalStorage<string>()
  const seen: (string | undefined)[] = []
  await using loop = setup(async () => {
    seen.push(request.getStore())
    return 600_000
  })
  await loop.loop.first
  request.run('create', () => loop.loop.nudge())
  await waitFor('the pass after the nudge', () => seen.length === 2)
  assert.deepEqual(seen, [undefined, undefined])
})
