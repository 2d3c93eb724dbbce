/** Guarantees of the node for a backup that captures paused sandboxes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateNode } from '../../sim/node.ts'

const resume = { sandboxId: 'i1', accessToken: undefined, boot: false }

test('a resume that is requested after a capture began waits for it', async () => {
  const { create, sandboxes } = simulateNode()
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const released = Promise.withResolvers<void>()
  const captured: string[] = []
  const capture = sandboxes.forEachPaused(async ({ owner }) => {
    await released.promise
    captured.push(owner.sandboxId)
  })
  let isBack = false
  const resumed = sandboxes.resume(resume).then(() => (isBack = true))
  await new Promise(setImmediate)
  assert.equal(isBack, false)
  released.resolve()
  await capture
  await resumed
  assert.deepEqual(captured, ['i1'])
})

test('running sandboxes are not captured', async () => {
  const { create, sandboxes } = simulateNode()
  await create()
  await sandboxes.forEachPaused(async () => assert.fail('the sandbox runs'))
})

test('a resume from files works on a copy of a disk that a backup reads', async () => {
  const { create, sandboxes } = simulateNode({
    overrides: { disks: { isLinked: async () => true } },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: false })
  const back = await sandboxes.resume(resume)
  assert.notEqual(back.record.disk, record.disk)
})

test('a resume from files works on the disk itself otherwise', async () => {
  const { create, sandboxes } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: false })
  const back = await sandboxes.resume(resume)
  assert.equal(back.record.disk, record.disk)
})
