import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newestConnections } from '../../domain/network/connections.ts'
import { parseSubnet, toSlot } from '../../domain/network/slot.ts'
import { createListDenied } from './connections.ts'

test('connections of an earlier user of the slot are left out, and the newest come first', () => {
  const connection = { port: 1, protocol: 'tcp', verdict: 'denied', count: 1 } as const
  const at = (...times: readonly number[]) => times.map((lastMs) => ({ ...connection, lastMs }))
  assert.deepEqual(newestConnections(at(5, 99, 100, 300, 200), 100), at(300, 200, 100))
  const many = at(...Array.from({ length: 600 }, (_, index) => index))
  assert.equal(newestConnections(many, 0).length, 500)
})

test('sandboxes with denials are listed newest first, with one reading for all', async () => {
  const times = new Map([
    [1, 500],
    [3, 900],
  ])
  const asked: number[] = []
  const list = createListDenied({
    sandboxes: {
      running: () =>
        [1, 2, 3].map((number) => ({
          record: { owner: { sandboxId: `i${number}` } },
          slot: toSlot(parseSubnet('10.0.0.0/24'), 'at', number),
        })),
    },
    async deniedSince(ms) {
      asked.push(ms)
      return ({ number }) => times.get(number)
    },
  })
  assert.deepEqual(await list(100), [
    { sandboxId: 'i3', lastMs: 900 },
    { sandboxId: 'i1', lastMs: 500 },
  ])
  assert.deepEqual(asked, [100])
  assert.deepEqual(await list(100, ['i1', 'i2']), [{ sandboxId: 'i1', lastMs: 500 }])
})
