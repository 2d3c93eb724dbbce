import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code } from '@connectrpc/connect'
import { failsWith, size } from './node-under-test.ts'
import type { NodeUnderTest } from './node-under-test.ts'

export function testSnapshots(node: NodeUnderTest): void {
  test('sandboxes are created from a snapshot of the same size, until it is deleted', async () => {
    const source = await node.create()
    const snapshotId = node.newId('s')
    const taken = await node.client.snapshotSandbox({ sandboxId: source, snapshotId })
    assert.equal(taken.keepsMemory, node.keepsMemory)
    const again = node.client.snapshotSandbox({ sandboxId: source, snapshotId })
    await failsWith(Code.AlreadyExists, again)
    assert.ok((await node.client.listSnapshots({})).snapshotIds.includes(snapshotId))
    await node.kill(source)
    const copy = await node.create({ snapshotId })
    const larger = { ...size, memoryMb: size.memoryMb * 2, sandboxId: node.newId('i'), snapshotId }
    await failsWith(Code.InvalidArgument, node.client.createSandbox(larger))
    await node.client.deleteSnapshot({ snapshotId })
    assert.ok(!(await node.client.listSnapshots({})).snapshotIds.includes(snapshotId))
    assert.equal((await node.find(copy))?.state, SandboxState.RUNNING)
    await node.kill(copy)
  })

  test('a snapshot for copies at once serves them, until it is deleted', async () => {
    const source = await node.create()
    const snapshotId = node.newId('s')
    const taken = await node.client.snapshotSandbox({ sandboxId: source, snapshotId, copies: 2 })
    assert.equal(taken.keepsMemory, node.keepsMemory)
    assert.ok((await node.client.listSnapshots({})).snapshotIds.includes(snapshotId))
    const copies = await Promise.all([node.create({ snapshotId }), node.create({ snapshotId })])
    await node.client.deleteSnapshot({ snapshotId })
    assert.ok(!(await node.client.listSnapshots({})).snapshotIds.includes(snapshotId))
    for (const copy of copies) assert.equal((await node.find(copy))?.state, SandboxState.RUNNING)
    for (const sandbox of [source, ...copies]) await node.kill(sandbox)
  })
}
