import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateNode } from '../../sim/node.ts'

const request = { sandboxId: 'i1', accessToken: undefined, boot: false }

test('a resume that fails still raises the generation, on disk too', async () => {
  let isBroken = true
  const { create, sandboxes, records } = simulateNode({
    overrides: {
      async dropBootPriority() {
        if (isBroken) throw new Error('broken')
      },
    },
  })
  isBroken = false
  await create()
  await sandboxes.pause('i1', { keepMemory: true, generation: 0 })
  isBroken = true
  await assert.rejects(sandboxes.resume({ ...request, generation: 5 }), /broken/)
  isBroken = false
  const stored = [...records.values()].map(({ phase, owner }) => [phase, owner?.generation])
  assert.deepEqual(stored, [['paused', 5]])
  const refused = { reason: 'stale_generation' }
  await assert.rejects(sandboxes.resume({ ...request, generation: 4 }), refused)
  const { record } = await sandboxes.resume({ ...request, generation: 6 })
  assert.equal(record.owner.generation, 6)
})

test('a resume of a running sandbox raises its generation', async () => {
  const { create, sandboxes, records } = simulateNode()
  await create()
  const { record } = await sandboxes.resume({ ...request, generation: 3 })
  const stored = [...records.values()].map(({ owner }) => owner?.generation)
  assert.deepEqual([record.owner.generation, ...stored], [3, 3])
  await assert.rejects(sandboxes.kill('i1', { generation: 2 }), { reason: 'stale_generation' })
})

test('a call that waits for a resume is checked against the generation after it', async () => {
  const { create, sandboxes } = simulateNode()
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const resumed = sandboxes.resume({ ...request, generation: 2 })
  const refused = { reason: 'stale_generation' }
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true, generation: 1 }), refused)
  await assert.rejects(sandboxes.kill('i1', { generation: 1 }), refused)
  await resumed
  assert.equal(sandboxes.running().length, 1)
  await sandboxes.kill('i1')
})

test('content that was paused elsewhere since is not resumed, but replaced', async () => {
  const { create, sandboxes, records } = simulateNode()
  await create()
  await sandboxes.resume({ ...request, generation: 1 })
  await sandboxes.pause('i1', { keepMemory: true, generation: 1 })
  const [older] = sandboxes.paused()
  assert.ok(older)
  const outdated = { ...request, generation: 4, keptGeneration: 3 }
  await assert.rejects(sandboxes.resume(outdated), { reason: 'sandbox_not_found' })
  const content = { keptGeneration: 3, keptId: 'newer' }
  const adoption = { sandboxId: 'i1', ...content, generation: 4 }
  const fetched = { ...older, cellId: 'cnewer', ...content }
  const fails = sandboxes.adopt(adoption, () => Promise.reject(new Error('no connection')))
  await assert.rejects(fails, /no connection/)
  assert.deepEqual(sandboxes.paused(), [older])
  await sandboxes.adopt(adoption, async () => {
    records.set(fetched.cellId, fetched)
    return fetched
  })
  assert.deepEqual(sandboxes.paused(), [fetched])
  assert.deepEqual([...records.keys()], [fetched.cellId])
  // The answer was lost, and the request comes again.
  await sandboxes.adopt(adoption, () => Promise.reject(new Error('not needed')))
  const { record } = await sandboxes.resume(outdated)
  assert.deepEqual([record.owner.generation, record.keptGeneration], [4, undefined])
  await assert.rejects(
    sandboxes.adopt({ ...adoption, generation: 5 }, async () => fetched),
    { reason: 'id_taken' },
  )
})

test('each pause has an ID of its own, and content of another pause never replaces it', async () => {
  const { create, sandboxes } = simulateNode()
  await create()
  const ids = []
  for (const generation of [1, 2]) {
    await sandboxes.resume({ ...request, generation, boot: generation === 2 })
    await sandboxes.pause('i1', { keepMemory: generation === 1, generation })
    ids.push(sandboxes.paused()[0]?.keptId)
  }
  assert.equal(new Set(ids).size, 2)
  assert.ok(!ids.includes(undefined))
  const [kept] = sandboxes.paused()
  assert.ok(kept)
  const other = { sandboxId: 'i1', keptGeneration: 2, keptId: 'other', generation: 3 }
  await assert.rejects(
    sandboxes.adopt(other, async () => ({ ...kept, keptId: 'other' })),
    { kind: 'conflict', reason: 'content_not_older' },
  )
  assert.deepEqual(sandboxes.paused(), [kept])
})
