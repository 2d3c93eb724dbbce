import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyedQueue } from './keyed-queue.ts'

test('tasks of one key run one after another, tasks of different keys concurrently', async () => {
  const queue = createKeyedQueue()
  const said: string[] = []
  const task = (name: string) => async () => {
    said.push(`${name} begins`)
    await new Promise(setImmediate)
    said.push(`${name} ends`)
  }
  const done = [queue.run('a', task('first')), queue.run('a', task('second'))]
  await queue.run('b', task('other'))
  await Promise.all(done)
  assert.deepEqual(
    said.filter((line) => !line.startsWith('other')),
    ['first begins', 'first ends', 'second begins', 'second ends'],
  )
  assert.ok(said.indexOf('other begins') < said.indexOf('second begins'))
})

test('a failed task rejects its own promise, and the next task runs', async () => {
  const queue = createKeyedQueue()
  const failed = queue.run('a', () => Promise.reject(new Error('no')))
  const next = queue.run('a', async () => 7)
  await assert.rejects(failed, { message: 'no' })
  assert.equal(await next, 7)
  await queue.settle()
})
