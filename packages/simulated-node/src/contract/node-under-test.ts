import assert from 'node:assert/strict'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Client, Transport } from '@connectrpc/connect'

export type NodeUnderTest = ReturnType<typeof createNodeUnderTest>

export const size = { templateId: 'base', cpuCount: 1, memoryMb: 256, diskSizeMb: 512 }

/** Calls of the contract suite to the node that `connect` names. */
export function createNodeUnderTest() {
  let connected: { client: Client<typeof NodeService>; keepsMemory: boolean } | undefined
  let ids = 0
  const node = () => connected ?? assert.fail('connect to the node first')
  const newId = (prefix: 'i' | 's') => `${prefix}${(ids += 1)}`
  return {
    async connect(transport: Transport) {
      const client = createClient(NodeService, transport)
      connected = { client, keepsMemory: (await client.getNode({})).keepsMemory }
    },
    get client() {
      return node().client
    },
    get keepsMemory() {
      return node().keepsMemory
    },
    newId,
    async create(
      changes: { readonly snapshotId?: string; readonly generation?: number } = {},
    ): Promise<string> {
      const sandboxId = newId('i')
      const { sandbox } = await node().client.createSandbox({ ...size, sandboxId, ...changes })
      assert.equal(sandbox?.sandboxId, sandboxId)
      return sandboxId
    },
    async find(sandboxId: string) {
      const { sandboxes } = await node().client.listSandboxes({})
      return sandboxes.find((sandbox) => sandbox.sandboxId === sandboxId)
    },
    kill: (sandboxId: string) => node().client.killSandbox({ sandboxId }),
  }
}

export async function failsWith(code: Code, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof ConnectError, String(error))
    assert.equal(Code[error.code], Code[code], error.message)
    return true
  })
}
