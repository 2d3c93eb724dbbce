import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsObjects } from './probe.ts'
import { createMemoryStore } from './testing/memory-store.ts'

test('a store that works leaves nothing of a probe, also not of one that was interrupted', async () => {
  const store = createMemoryStore()
  store.objects.set('probes/n1', Buffer.from('left'))
  assert.equal(await acceptsObjects(store, 'n1'), true)
  assert.deepEqual([...store.objects.keys()], [])
})

test('a store that is down, or takes no objects, does not work', async () => {
  const store = createMemoryStore()
  store.setDown(true)
  assert.equal(await acceptsObjects(store, 'n1'), false)
  store.setDown(false)
  store.onChange = (operation) => {
    if (operation === 'create') throw new Error('the quota is used up')
  }
  assert.equal(await acceptsObjects(store, 'n1'), false)
})
