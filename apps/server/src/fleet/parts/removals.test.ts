import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { startRemovals } from './removals.ts'

test('the list is known as soon as members may call', async () => {
  const removals = await startRemovals(async () => ['n1'], silentLogger)
  assert.deepEqual(
    [
      removals.ids(),
      removals.has({ role: 'node', id: 'n1' }),
      removals.has({ role: 'edge', id: 'e1' }),
    ],
    [['n1'], true, false],
  )
  await removals.close()
})

test('a list that cannot be read is not taken for an empty one', async () => {
  const failing = async () => Promise.reject(new Error('the database does not answer'))
  await assert.rejects(startRemovals(failing, silentLogger), /does not answer/)
})

test('a list that cannot be read any more stays as it was', async () => {
  let reads = 0
  const removals = await startRemovals(async () => {
    reads += 1
    if (reads > 1) throw new Error('the database does not answer')
    return ['n1']
  }, silentLogger)
  await removals.close()
  assert.deepEqual([reads > 1, removals.ids()], [true, ['n1']])
})
