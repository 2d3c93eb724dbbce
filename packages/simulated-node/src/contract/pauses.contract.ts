import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code } from '@connectrpc/connect'
import { failsWith } from './node-under-test.ts'
import type { NodeUnderTest } from './node-under-test.ts'

export function testPauses(node: NodeUnderTest): void {
  test('a paused sandbox stays listed, and a resume starts it again', async () => {
    const sandboxId = await node.create()
    await node.client.pauseSandbox({ sandboxId, keepMemory: node.keepsMemory })
    const { state, keepsMemory: hasMemory } =
      (await node.find(sandboxId)) ?? assert.fail('not listed')
    assert.deepEqual([state, hasMemory], [SandboxState.PAUSED, node.keepsMemory])
    await node.client.pauseSandbox({ sandboxId, keepMemory: node.keepsMemory })
    const resumed = await node.client.resumeSandbox({ sandboxId })
    assert.equal(resumed.sandbox?.state, SandboxState.RUNNING)
    const again = await node.client.resumeSandbox({ sandboxId })
    assert.equal(again.sandbox?.address, resumed.sandbox?.address)
    await node.kill(sandboxId)
  })

  test('a pause answers with the random ID of its content, also when repeated', async () => {
    const sandboxId = await node.create({ generation: 1 })
    const pause = { sandboxId, keepMemory: node.keepsMemory, generation: 1 }
    const { keptId } = await node.client.pauseSandbox(pause)
    assert.notEqual(keptId, '')
    assert.equal((await node.client.pauseSandbox(pause)).keptId, keptId)
    assert.equal((await node.find(sandboxId))?.keptId, keptId)
    await node.client.killSandbox({ sandboxId, generation: 1 })
  })

  test('a paused sandbox can be killed', async () => {
    const sandboxId = await node.create()
    await node.client.pauseSandbox({ sandboxId, keepMemory: false })
    await node.kill(sandboxId)
    await failsWith(Code.NotFound, node.client.resumeSandbox({ sandboxId }))
  })

  test('a pause that cannot keep memory leaves the sandbox running', async (t) => {
    if (node.keepsMemory) return t.skip('the runtime keeps memory')
    const sandboxId = await node.create()
    const pause = node.client.pauseSandbox({ sandboxId, keepMemory: true })
    await failsWith(Code.FailedPrecondition, pause)
    assert.equal((await node.find(sandboxId))?.state, SandboxState.RUNNING)
    await node.kill(sandboxId)
  })
}
