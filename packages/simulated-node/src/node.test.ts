import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createClient } from '@connectrpc/connect'
import { testNodeContract } from './contract/node.contract.ts'
import { testObjectsContract } from './contract/objects.contract.ts'
import { simulateNode } from './node.ts'
import { simulateObjects } from './objects.ts'

testNodeContract('a simulated node', async () => ({
  transport: simulateNode().transport,
  async [Symbol.asyncDispose]() {},
}))

testNodeContract('a simulated node that keeps no memory', async () => {
  const node = simulateNode()
  node.dropMemorySupport()
  return { transport: node.transport, async [Symbol.asyncDispose]() {} }
})

testObjectsContract('simulated nodes with an object store', async () => {
  const objects = simulateObjects()
  const [first, second] = ['first', 'second'].map((id) => simulateNode(undefined, id, objects))
  if (!first || !second) throw new Error('two nodes were made')
  return {
    first: createClient(NodeService, first.transport),
    second: createClient(NodeService, second.transport),
    async act(sandboxId) {
      first.logs.write(sandboxId, { at: Date.now(), message: 'did something' })
    },
    async [Symbol.asyncDispose]() {},
  }
})
