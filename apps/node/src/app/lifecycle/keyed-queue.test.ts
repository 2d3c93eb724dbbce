import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurns } from './keyed-queue.ts'

test('tasks of one key run one after the other, those of another beside them', async () => {
  const turns = createTurns()
  const said: string[] = []
  const task = (name: string) => async () => {
    said.push(`${name} begins`)
    await new Promise(setImmediate)
    said.push(`${name} ends`)
  }
  const done = [turns.take('a', task('first')), turns.take('a', task('second'))]
  await turns.take('b', task('other'))
  await Promise.all(done)
  assert.deepEqual(
    said.filter((line) => !line.startsWith('other')),
    ['first begins', 'first ends', 'second begins', 'second ends'],
  )
  assert.ok(said.indexOf('other begins') < said.indexOf('second begins'))
})

test('a task that fails tells its caller and lets the next one have its turn', async () => {
  const turns = createTurns()
  const failed = turns.take('a', () => Promise.reject(new Error('no')))
  const next = turns.take('a', async () => 7)
  await assert.rejects(failed, { message: 'no' })
  assert.equal(await next, 7)
  await turns.settle()
})
