import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import type { NodeUnderTest } from './node-under-test.ts'
import { watchNode } from './watch-node.ts'

export function testWatch(node: NodeUnderTest): void {
  test('a watch reports the running sandboxes, then each change in order', async () => {
    const existing = await node.create()
    await using watch = watchNode(node.client)
    await waitFor('the watch to be synced', () => watch.changesOf('').includes('synced'))
    assert.deepEqual(watch.changesOf(existing), ['started'])
    const sandboxId = await node.create()
    await node.client.pauseSandbox({ sandboxId, keepMemory: node.keepsMemory })
    await node.client.resumeSandbox({ sandboxId })
    await node.kill(sandboxId)
    const expected = ['started', 'pausing', 'paused', 'started', 'ended: was killed']
    await waitFor('all changes', () => watch.changesOf(sandboxId).length >= expected.length)
    assert.deepEqual(watch.changesOf(sandboxId), expected)
    await node.kill(existing)
  })
}
