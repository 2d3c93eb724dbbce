import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMailbox } from './mailbox.ts'

function setup() {
  let asked = 0
  const mailbox = createMailbox<{ readonly id: number }>(() => (asked += 1))
  const take = async () => (await mailbox.next()).value?.id
  return { mailbox, take, asked: () => asked }
}

test('items come in their order, whether asked for before or after', async () => {
  const { mailbox, take, asked } = setup()
  const early = [take(), take()]
  assert.deepEqual([mailbox.isAwaited(), asked()], [true, 2])
  for (const id of [1, 2, 3, 4]) mailbox.put({ id })
  assert.equal(mailbox.isAwaited(), false)
  assert.deepEqual(await Promise.all([...early, take(), take()]), [1, 2, 3, 4])
  assert.deepEqual([mailbox.isAwaited(), asked()], [false, 2])
})

test('an end comes after what was put before it', async () => {
  const { mailbox, take } = setup()
  mailbox.put({ id: 1 })
  mailbox.end()
  mailbox.end(new Error('too late'))
  assert.equal(await take(), 1)
  assert.deepEqual(await mailbox.next(), { done: true, value: undefined })
})

test('a failure is told once, and everybody who waits learns of the end', async () => {
  const { mailbox } = setup()
  const waiting = Promise.allSettled([mailbox.next(), mailbox.next()])
  mailbox.end(new Error('broken'))
  const [first, second] = await waiting
  assert.deepEqual([first.status, second.status], ['rejected', 'fulfilled'])
  assert.deepEqual(await mailbox.next(), { done: true, value: undefined })
})

test('a failure that nobody asks for is no unhandled one', async () => {
  const { mailbox } = setup()
  mailbox.end(new Error('broken'))
  await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(mailbox.next(), /broken/)
})

test('what is cleared is not given', async () => {
  const { mailbox, take } = setup()
  mailbox.put({ id: 1 })
  mailbox.clear()
  mailbox.put({ id: 2 })
  assert.equal(await take(), 2)
})
