import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInputQueue } from './input-queue.ts'
import { fromFrame, toFrame } from './live-frames.ts'

test('a frame carries the number of its channel and bytes', () => {
  const frame = toFrame(0xfffffffe, Uint8Array.of(1, 2, 255))
  const { number, bytes } = fromFrame(frame.buffer)
  assert.deepEqual([number, [...bytes]], [0xfffffffe, [1, 2, 255]])
})

test('a large paste goes in pieces, and more only after the sandbox has taken some', () => {
  const sent: Uint8Array[] = []
  const queue = createInputQueue((bytes) => sent.push(bytes))
  const paste = Uint8Array.from({ length: 200_000 }, (_, index) => index % 251)
  queue.push(paste)
  const underWay = () => sent.reduce((sum, { length }) => sum + length, 0)
  assert.ok(underWay() <= 128 * 1024)
  for (let taken = 0; taken < sent.length; taken += 1) queue.taken(sent[taken]?.length ?? 0)
  assert.deepEqual(Buffer.concat(sent), Buffer.from(paste))
})

test('input of a lost connection is not sent to the next one', () => {
  const sent: Uint8Array[] = []
  const queue = createInputQueue((bytes) => sent.push(bytes))
  queue.push(new Uint8Array(1_000_000))
  const before = sent.length
  queue.reset()
  queue.push(Uint8Array.of(7))
  assert.deepEqual(
    sent.slice(before).map((bytes) => [...bytes]),
    [[7]],
  )
})
