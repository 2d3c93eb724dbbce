import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFlow } from './terminal-flow.ts'

test('output waits until the page has drawn what it got', async () => {
  const flow = createFlow(new AbortController().signal, 100)
  await flow.sent(100)
  let isFree = false
  const waiting = flow.sent(50).then(() => (isFree = true))
  flow.acknowledged(10)
  await Promise.resolve()
  assert.equal(isFree, false)
  flow.acknowledged(40)
  await waiting
  assert.equal(isFree, true)
})

test('an acknowledgement of more than was sent gains nothing', async () => {
  const closing = new AbortController()
  const flow = createFlow(closing.signal, 100)
  flow.acknowledged(1_000_000)
  const waiting = flow.sent(101)
  closing.abort(new Error('closed'))
  await assert.rejects(waiting, /closed/)
})
