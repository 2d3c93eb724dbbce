import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

test('a created sandbox is recorded as running, with its process and its own cell', async () => {
  const { create, records, sandboxes } = simulateNode()
  const { record, slot } = await create()
  assert.equal(records.get(record.cellId)?.phase, 'running')
  assert.equal(records.get(record.cellId)?.owner?.sandboxId, 'i1')
  assert.equal(slot.sandboxAddress, '10.0.0.2')
  assert.deepEqual(sandboxes.get('i1'), { record, slot })
})

test('each start drops the boot-time CPU priority once the sandbox runs', async () => {
  const { create, sandboxes, levelled } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const resumed = await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual(levelled, [record.cellId, resumed.record.cellId])
})

test('a second create with the same ID is refused, also while the first one runs', async () => {
  const { create, slots } = simulateNode()
  const results = await Promise.allSettled([create(), create()])
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'rejected'],
  )
  await assert.rejects(create(), { reason: 'id_taken' })
  assert.equal(slots.size, 1)
})

for (const [what, overrides] of Object.entries({
  'no such template': { findTemplate: () => undefined },
  'an envd that never answers': { initEnvd: () => Promise.reject(new Error('silent')) },
})) {
  test(`${what} fails the create and leaves nothing on the host`, async () => {
    const { create, records, slots, sandboxes, files } = simulateNode({ overrides })
    await assert.rejects(create())
    assert.deepEqual(
      [records.size, slots.size, sandboxes.running().length, files.size],
      [0, 0, 0, 0],
    )
  })
}

test('a create whose caller disconnects leaves nothing on the host', async () => {
  const disconnected = new AbortController()
  const overrides = { initEnvd: async () => disconnected.abort() }
  const { create, records, slots, alive } = simulateNode({ overrides })
  await assert.rejects(create({}, disconnected.signal))
  assert.deepEqual([records.size, slots.size, alive.size], [0, 0, 0])
})

test('a kill waits for a concurrent create, and two kills share one removal', async () => {
  const { create, sandboxes, records } = simulateNode()
  const created = create()
  await Promise.all([sandboxes.kill('i1'), sandboxes.kill('i1'), created])
  assert.equal(records.size, 0)
  await sandboxes.kill('i1')
})

test('a sandbox that dies is removed, and its end is reported with the reason', async () => {
  const { create, sandboxes, alive, seen, slots } = simulateNode({
    overrides: { oomKills: () => 1 },
  })
  await create()
  alive.clear()
  await sandboxes.removeDead()
  assert.deepEqual([sandboxes.running(), slots.size], [[], 0])
  await waitFor('the event of the end', () => seen.at(-1)?.kind === 'ended')
  assert.deepEqual(seen.at(-1), {
    kind: 'ended',
    generation: 0,
    sandboxId: 'i1',
    reason: 'ran out of memory (limit 256 MB)',
  })
})

for (const bad of [
  { sandboxId: '../etc' },
  { sandboxId: '' },
  { memoryMb: 0 },
  { cpuCount: 0 },
  { diskSizeMb: 1 },
]) {
  test(`${JSON.stringify(bad)} is refused before anything is created`, async () => {
    const { create, slots } = simulateNode()
    await assert.rejects(create(bad), { kind: 'invalid' })
    assert.equal(slots.size, 0)
  })
}
