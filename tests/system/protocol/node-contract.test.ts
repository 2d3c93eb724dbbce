/** Runs the node contract against real nodes. The simulated node of other tests passes the same suite. */
import { mkdtemp, rm } from 'node:fs/promises'
import { silentLogger } from '@atoll/kit/log'
import { run } from '@atoll/kit/run'
import { startNode } from '@atoll/node'
import { loadNodeConfig } from '@atoll/node/config'
import { testNodeContract } from '@atoll/simulated-node/contract/node.contract'
import { atoll, createEnvironment } from '../installation.ts'

for (const runtime of ['gvisor', 'runc']) {
  testNodeContract(`a node with ${runtime}`, async () => {
    const dataDir = await mkdtemp('/var/tmp/atoll-test-')
    const env = createEnvironment(dataDir, { ATOLL_RUNTIME: runtime })
    const node = await startNode(loadNodeConfig(env), { log: silentLogger })
    return {
      transport: node.transport,
      async [Symbol.asyncDispose]() {
        await node.close()
        await run(atoll, ['down'], { env })
        await rm(dataDir, { recursive: true, force: true })
      },
    }
  })
}
