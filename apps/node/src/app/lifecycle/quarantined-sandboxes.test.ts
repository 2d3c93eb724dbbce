import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateNode } from '../../sim/node.ts'

const damagedCell = {
  kind: 'sandbox',
  cellId: 'c9',
  path: '/cells/c9',
  reason: 'its checksum is wrong',
} as const

test('a sandbox with an unreadable record is refused instead of absent, and its kill keeps the files', async () => {
  const halted: string[] = []
  const { create, sandboxes } = simulateNode({
    quarantined: [{ ...damagedCell, sandboxId: 'i9' }],
    overrides: {
      halt: async (cellId) => void halted.push(cellId),
      erase: async (cellId) => assert.fail(`${cellId} was erased`),
    },
  })
  assert.deepEqual(sandboxes.quarantined(), ['i9'])
  assert.deepEqual([sandboxes.isQuarantined('i9'), sandboxes.isQuarantined('i8')], [true, false])
  const refused = { reason: 'record_unreadable' }
  await assert.rejects(
    sandboxes.resume({ sandboxId: 'i9', accessToken: undefined, boot: false }),
    refused,
  )
  await assert.rejects(sandboxes.pause('i9', { keepMemory: true }), refused)
  await assert.rejects(sandboxes.snapshot('i9', 's1'), refused)
  await assert.rejects(create({ sandboxId: 'i9' }), { reason: 'id_taken' })
  await sandboxes.kill('i9')
  assert.deepEqual([halted, sandboxes.quarantined()], [['c9'], []])
})

test('an unreadable record without an ID may belong to any sandbox that is not found', async () => {
  const { create, sandboxes } = simulateNode({ quarantined: [damagedCell] })
  await create({ sandboxId: 'i1' })
  assert.deepEqual([sandboxes.isQuarantined('i1'), sandboxes.isQuarantined('i2')], [false, true])
  assert.deepEqual(sandboxes.quarantined(), [])
})
