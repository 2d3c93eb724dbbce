import { testNodeContract } from './contract/node.contract.ts'
import { simulateNode } from './node.ts'

testNodeContract('a simulated node', async () => ({
  transport: simulateNode().transport,
  async [Symbol.asyncDispose]() {},
}))

testNodeContract('a simulated node that keeps no memory', async () => {
  const node = simulateNode()
  node.dropMemorySupport()
  return { transport: node.transport, async [Symbol.asyncDispose]() {} }
})
