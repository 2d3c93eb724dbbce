import { after, before, suite } from 'node:test'
import type { Transport } from '@connectrpc/connect'
import { createNodeUnderTest } from './node-under-test.ts'
import { testGenerations } from './generations.contract.ts'
import { testPauses } from './pauses.contract.ts'
import { testSandboxes } from './sandboxes.contract.ts'
import { testSnapshots } from './snapshots.contract.ts'
import { testWatch } from './watch.contract.ts'

/** Tests the rules of the node protocol that the API and the edge rely on. Every implementation runs this suite. */
export function testNodeContract(
  name: string,
  start: () => Promise<{ readonly transport: Transport } & AsyncDisposable>,
): void {
  suite(name, () => {
    const node = createNodeUnderTest()
    let started: Awaited<ReturnType<typeof start>> | undefined
    before(async () => {
      started = await start()
      await node.connect(started.transport)
    })
    after(() => started?.[Symbol.asyncDispose]())
    testSandboxes(node)
    testPauses(node)
    testSnapshots(node)
    testGenerations(node)
    testWatch(node)
  })
}
