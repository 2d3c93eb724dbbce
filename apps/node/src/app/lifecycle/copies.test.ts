import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateNode } from '../../sim/node.ts'

test('a failed snapshot reports its first error, also when the sandbox is gone', async () => {
  const { create, sandboxes } = simulateNode({
    overrides: {
      runtime: {
        saveMemory: () => Promise.reject(new Error('it died')),
        thaw: () => Promise.reject(new Error('in state stopped')),
      },
    },
  })
  await create()
  await assert.rejects(sandboxes.snapshot('i1', 's1'), { message: 'it died' })
})

test('a snapshot of another runtime cannot be started', async () => {
  const { create, sandboxes, snapshots } = simulateNode()
  await create()
  await sandboxes.snapshot('i1', 's1')
  const snapshot = await snapshots.find('s1')
  assert.ok(snapshot)
  await snapshots.add({ ...snapshot, snapshotId: 's2', runtime: 'runc' }, async () => {})
  await assert.rejects(create({ sandboxId: 'i2', snapshotId: 's2' }), { reason: 'other_runtime' })
})

test('sandboxes created from a snapshot run next to the original, which is thawed', async () => {
  const { create, sandboxes, frozen, files } = simulateNode()
  await create()
  assert.deepEqual(await sandboxes.snapshot('i1', 's1'), { keepsMemory: true, sizeBytes: 7 })
  assert.equal(frozen.size, 0)
  await assert.rejects(sandboxes.snapshot('i1', 's1'), { reason: 'id_taken' })
  await Promise.all(['i2', 'i3'].map((sandboxId) => create({ sandboxId, snapshotId: 's1' })))
  assert.deepEqual(
    sandboxes.running().map(({ record }) => record.owner.sandboxId),
    ['i1', 'i2', 'i3'],
  )
  assert.equal([...files.keys()].filter((path) => path.endsWith('disk.img')).length, 3)
  await assert.rejects(create({ sandboxId: 'i4', snapshotId: 'none' }), { kind: 'not_found' })
  const larger = create({ sandboxId: 'i4', snapshotId: 's1', memoryMb: 1024 })
  await assert.rejects(larger, { reason: 'snapshot_size_differs' })
})

test('a snapshot for copies is not written to stable storage, and others are', async () => {
  const flushed: string[] = []
  const { create, sandboxes } = simulateNode({
    overrides: {
      disks: { flush: async (path) => void flushed.push(path) },
      flushFolder: async (path) => void flushed.push(path),
    },
  })
  await create()
  const options = { copies: 2 }
  assert.deepEqual(await sandboxes.snapshot('i1', 's1', options), {
    keepsMemory: true,
    sizeBytes: 7,
  })
  await Promise.all(['i2', 'i3'].map((sandboxId) => create({ sandboxId, snapshotId: 's1' })))
  assert.deepEqual(flushed, [])
  await sandboxes.snapshot('i1', 's2')
  assert.deepEqual(new Set(flushed), new Set(['/snapshots/s2/disk', '/snapshots/s2/m']))
})
