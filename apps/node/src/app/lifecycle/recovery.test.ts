import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

test('freezeAndThaw freezes a sandbox for a moment', async () => {
  const froze: string[] = []
  const { create, sandboxes, frozen, records } = simulateNode({
    overrides: { runtime: { freeze: async (cellId) => void froze.push(cellId) } },
  })
  const { record } = await create()
  await sandboxes.freezeAndThaw('i1')
  assert.deepEqual([froze, frozen.size], [[record.cellId], 0])
  assert.equal(records.get(record.cellId)?.phase, 'running')
  await sandboxes.freezeAndThaw('i2')
})

test('a sandbox that cannot be frozen keeps running', async () => {
  const { create, sandboxes, records } = simulateNode({
    overrides: { runtime: { freeze: () => Promise.reject(new Error('no')) } },
  })
  const { record } = await create()
  await assert.rejects(sandboxes.freezeAndThaw('i1'), /no/)
  assert.equal(records.get(record.cellId)?.phase, 'running')
})

test('killUnless ends a sandbox that does not answer, with the reason, and keeps one that does', async () => {
  const { create, sandboxes, seen } = simulateNode({ overrides: { oomKills: () => 1 } })
  await create()
  assert.equal(await sandboxes.killUnless(async () => true, 'i1'), true)
  assert.equal(sandboxes.running().length, 1)
  assert.equal(await sandboxes.killUnless(async () => false, 'i1'), false)
  assert.equal(sandboxes.running().length, 0)
  const reason = 'ran out of memory (limit 256 MB)'
  await waitFor('the event of the end', () => seen.at(-1)?.kind === 'ended')
  assert.deepEqual(seen.at(-1), { kind: 'ended', sandboxId: 'i1', generation: 0, reason })
  assert.equal(await sandboxes.killUnless(async () => true, 'i1'), false)
})
