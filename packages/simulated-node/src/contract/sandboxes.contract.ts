import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code } from '@connectrpc/connect'
import { failsWith, size } from './node-under-test.ts'
import type { NodeUnderTest } from './node-under-test.ts'

export function testSandboxes(node: NodeUnderTest): void {
  test('GetNode describes the node', async () => {
    const { nodeId, runtime, envdVersion, templateIds } = await node.client.getNode({})
    assert.ok(nodeId && runtime)
    assert.match(envdVersion, /^\d+\.\d+\.\d+$/)
    assert.deepEqual(templateIds, ['base'])
  })

  test('a created sandbox runs and is listed until it is killed', async () => {
    const sandboxId = await node.create()
    const { sandbox } = await node.client.getSandbox({ sandboxId })
    assert.equal(sandbox?.state, SandboxState.RUNNING)
    assert.match(sandbox.address, /^\d+\.\d+\.\d+\.\d+$/)
    assert.equal((await node.find(sandboxId))?.address, sandbox.address)
    await node.kill(sandboxId)
    assert.equal(await node.find(sandboxId), undefined)
    await failsWith(Code.NotFound, node.client.getSandbox({ sandboxId }))
  })

  test('CreateSandbox refuses a taken ID, an unknown template and an unknown snapshot', async () => {
    const sandboxId = await node.create()
    await failsWith(Code.AlreadyExists, node.client.createSandbox({ ...size, sandboxId }))
    await node.client.pauseSandbox({ sandboxId, keepMemory: false })
    await failsWith(Code.AlreadyExists, node.client.createSandbox({ ...size, sandboxId }))
    await node.kill(sandboxId)
    const other = { ...size, sandboxId: node.newId('i') }
    await failsWith(Code.NotFound, node.client.createSandbox({ ...other, templateId: 'unknown' }))
    await failsWith(Code.NotFound, node.client.createSandbox({ ...other, snapshotId: 'unknown' }))
    await failsWith(Code.Aborted, node.client.createSandbox({ ...other, isNamed: true }))
    assert.equal(await node.find(other.sandboxId), undefined)
  })

  test('KillSandbox and the deletions succeed where nothing is left to do', async () => {
    await node.client.killSandbox({ sandboxId: 'iunknown' })
    await node.client.deleteSnapshot({ snapshotId: 'unknown' })
    await node.client.deleteTemplate({ templateId: 'unknown' })
    await node.client.deleteLogs({ sandboxIds: ['iunknown'] })
  })

  test('operations on an unknown sandbox find nothing', async () => {
    const sandboxId = 'iunknown'
    await failsWith(Code.NotFound, node.client.pauseSandbox({ sandboxId, keepMemory: false }))
    await failsWith(Code.NotFound, node.client.resumeSandbox({ sandboxId }))
    await failsWith(Code.NotFound, node.client.snapshotSandbox({ sandboxId, snapshotId: 's0' }))
    await failsWith(Code.NotFound, node.client.updateNetwork({ sandboxId, network: {} }))
    assert.deepEqual((await node.client.sampleSandboxes({ sandboxId })).samples, [])
    assert.deepEqual((await node.client.readLogs({ sandboxId, limit: 10 })).entries, [])
    const fromObjects = node.client.readLogs({ sandboxId, limit: 10, fromObjects: true })
    await failsWith(Code.InvalidArgument, fromObjects)
    assert.deepEqual((await node.client.listLastLines({ sandboxIds: [sandboxId] })).lines, [])
    const { sandboxes } = await node.client.listDenied({ sinceMs: 0n })
    assert.ok(!sandboxes.some((denied) => denied.sandboxId === sandboxId))
  })

  test('network rules change only while the sandbox runs', async () => {
    const sandboxId = await node.create()
    const network = { denyOut: ['0.0.0.0/0'] }
    await node.client.updateNetwork({ sandboxId, network })
    await node.client.pauseSandbox({ sandboxId, keepMemory: false })
    await failsWith(Code.NotFound, node.client.updateNetwork({ sandboxId, network }))
    await node.kill(sandboxId)
  })

  test('samples have one entry for each running sandbox', async () => {
    const [running, paused] = [await node.create(), await node.create()]
    await node.client.pauseSandbox({ sandboxId: paused, keepMemory: false })
    const { samples } = await node.client.sampleSandboxes({})
    assert.deepEqual(
      samples.filter(({ sandboxId }) => [running, paused].includes(sandboxId)).length,
      1,
    )
    const [sample] = (await node.client.sampleSandboxes({ sandboxId: running })).samples
    assert.deepEqual([sample?.sandboxId, sample?.cpuCount], [running, size.cpuCount])
    await Promise.all([node.kill(running), node.kill(paused)])
  })
}
