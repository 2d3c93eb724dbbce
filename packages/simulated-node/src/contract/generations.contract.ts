import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import {
  epochHeader,
  nodeHeader,
  reasonHeader,
  staleGeneration,
  wrongEpoch,
  wrongNode,
} from '@atoll/contracts/node-faults'
import { Code, ConnectError } from '@connectrpc/connect'
import { size } from './node-under-test.ts'
import type { NodeUnderTest } from './node-under-test.ts'

export function testGenerations(node: NodeUnderTest): void {
  test('calls for an older generation of a sandbox are refused and change nothing', async () => {
    const { client } = node
    const sandboxId = node.newId('i')
    const created = await client.createSandbox({ ...size, sandboxId, generation: 2 })
    assert.equal(created.sandbox?.generation, 2)
    const old = { sandboxId, generation: 1 }
    const snapshotId = node.newId('s')
    const checkRefused = async (): Promise<void> => {
      await isRefused(staleGeneration, client.pauseSandbox({ ...old, keepMemory: false }))
      await isRefused(staleGeneration, client.resumeSandbox(old))
      await isRefused(staleGeneration, client.snapshotSandbox({ ...old, snapshotId }))
      await isRefused(staleGeneration, client.updateNetwork({ ...old, network: {} }))
      await isRefused(staleGeneration, client.killSandbox(old))
    }
    await checkRefused()
    assert.equal((await node.find(sandboxId))?.state, SandboxState.RUNNING)
    await client.pauseSandbox({ sandboxId, generation: 2, keepMemory: false })
    await checkRefused()
    assert.deepEqual(await describe(node, sandboxId), [SandboxState.PAUSED, 2])
    await client.killSandbox({ sandboxId, generation: 2 })
    assert.equal(await node.find(sandboxId), undefined)
  })

  test('a resume raises the generation, and repeating it succeeds', async () => {
    const { client } = node
    const sandboxId = node.newId('i')
    await client.createSandbox({ ...size, sandboxId, generation: 1 })
    await client.pauseSandbox({ sandboxId, generation: 1, keepMemory: false })
    await client.resumeSandbox({ sandboxId, generation: 2 })
    await client.resumeSandbox({ sandboxId, generation: 2 })
    assert.deepEqual(await describe(node, sandboxId), [SandboxState.RUNNING, 2])
    await isRefused(staleGeneration, client.killSandbox({ sandboxId, generation: 1 }))
    await client.killSandbox({ sandboxId, generation: 3 })
  })

  test('a call for another node or another epoch is refused', async () => {
    const { client } = node
    const { nodeId, epoch } = await client.getNode({})
    const own = { [nodeHeader]: nodeId, [epochHeader]: String(epoch) }
    await client.listSandboxes({}, { headers: own })
    const other = { ...own, [nodeHeader]: 'another' }
    await isRefused(wrongNode, client.listSandboxes({}, { headers: other }))
    const earlier = { ...own, [epochHeader]: String(epoch - 1) }
    await isRefused(wrongEpoch, client.listSandboxes({}, { headers: earlier }))
    await isRefused(wrongEpoch, client.killSandbox({ sandboxId: 'i0' }, { headers: earlier }))
  })
}

async function describe(node: NodeUnderTest, sandboxId: string) {
  const found = await node.find(sandboxId)
  return [found?.state, found?.generation]
}

async function isRefused(reason: string, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof ConnectError, String(error))
    const found = [Code[error.code], error.metadata.get(reasonHeader)]
    assert.deepEqual(found, [Code[Code.FailedPrecondition], reason], error.message)
    return true
  })
}
