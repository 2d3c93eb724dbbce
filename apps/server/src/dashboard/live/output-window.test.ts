import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOutputWindow } from './output-window.ts'

test('output waits until the page has drawn what it got', async () => {
  const window = createOutputWindow(new AbortController().signal, 100)
  await window.sent(100)
  let isFree = false
  const waiting = window.sent(50).then(() => (isFree = true))
  window.acknowledged(10)
  await Promise.resolve()
  assert.equal(isFree, false)
  window.acknowledged(40)
  await waiting
  assert.equal(isFree, true)
})

test('an acknowledgement of more than was sent gains nothing', async () => {
  const closing = new AbortController()
  const window = createOutputWindow(closing.signal, 100)
  window.acknowledged(1_000_000)
  const waiting = window.sent(101)
  closing.abort(new Error('closed'))
  await assert.rejects(waiting, /closed/)
})

test('a full window is released without an acknowledgement', async () => {
  const window = createOutputWindow(new AbortController().signal, 100)
  const waiting = window.sent(101)
  assert.equal(window.isFull(), true)
  window.release()
  await waiting
  assert.equal(window.isFull(), false)
})
