import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createBuildQueue, inOrder } from './build-queue.ts'

/** Queue whose builds end when the test says so. */
function setup(limit: number) {
  const queue = createBuildQueue(limit)
  const running: string[] = []
  const positions: string[] = []
  const ends = new Map<string, PromiseWithResolvers<void>>()
  return {
    running,
    positions,
    add(name: string, signal = new AbortController().signal) {
      const end = Promise.withResolvers<void>()
      ends.set(name, end)
      const onWaiting = (position: number) => void positions.push(`${name} ${position}`)
      return queue.run({ ownerId: name.charAt(0), signal, onWaiting }, async () => {
        running.push(name)
        await end.promise.finally(() => running.splice(running.indexOf(name), 1))
      })
    },
    async end(name: string) {
      ends.get(name)?.resolve()
      await turn()
    },
    fail: (name: string) => ends.get(name)?.reject(new Error('failed')),
  }
}

test('one owner uses all places, and the next builds start in order', async () => {
  const { add, end, running, positions } = setup(2)
  const builds = ['a1', 'a2', 'a3', 'a4'].map((name) => add(name))
  await turn()
  assert.deepEqual(
    [running, positions],
    [
      ['a1', 'a2'],
      ['a3 1', 'a4 2'],
    ],
  )
  await end('a2')
  assert.deepEqual([running, positions.slice(2)], [['a1', 'a3'], ['a4 1']])
  for (const name of ['a1', 'a3', 'a4']) await end(name)
  await Promise.all(builds)
})

test('an owner without a running build gets one more place, then the next free one', async () => {
  const { add, end, running, positions } = setup(2)
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) void add(name)
  await turn()
  assert.deepEqual(running, ['a1', 'a2', 'b1'])
  await end('a1')
  assert.deepEqual(running, ['a2', 'b1', 'c1'])
  assert.equal(positions.at(-1), 'a3 1')
  await end('b1')
  // Two builds run, as many as there are places for owners that have one.
  assert.deepEqual(running, ['a2', 'c1', 'b2'])
})

test('a failed build frees its place', async () => {
  const { add, fail, running } = setup(1)
  const first = add('a1')
  void add('a2')
  await turn()
  fail('a1')
  await assert.rejects(first, /failed/)
  await turn()
  assert.deepEqual(running, ['a2'])
})

test('an aborted build leaves the queue at once', async () => {
  const { add, end, running, positions } = setup(1)
  const leaving = new AbortController()
  void add('a1')
  const second = add('a2', leaving.signal)
  void add('a3')
  leaving.abort()
  await assert.rejects(second, { name: 'AbortError' })
  assert.equal(positions.at(-1), 'a3 1')
  await end('a1')
  assert.deepEqual(running, ['a3'])
  await assert.rejects(add('a4', AbortSignal.abort()), { name: 'AbortError' })
})

test('owners take turns by the number of their builds', () => {
  const builds = ['a', 'a', 'b', 'a', 'c'].map((ownerId, at) => ({ ownerId, name: ownerId + at }))
  const order = inOrder(builds, new Map([['b', 1]])).map(({ name }) => name)
  assert.deepEqual(order, ['a0', 'c4', 'a1', 'b2', 'a3'])
})
