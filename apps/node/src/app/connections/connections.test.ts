import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newestConnections } from '../../domain/network/connections.ts'

test('connections of an earlier user of the slot are left out, and the newest come first', () => {
  const connection = { port: 1, protocol: 'tcp', verdict: 'denied', count: 1 } as const
  const at = (...times: readonly number[]) => times.map((lastMs) => ({ ...connection, lastMs }))
  assert.deepEqual(newestConnections(at(5, 99, 100, 300, 200), 100), at(300, 200, 100))
  const many = at(...Array.from({ length: 600 }, (_, index) => index))
  assert.equal(newestConnections(many, 0).length, 500)
})
