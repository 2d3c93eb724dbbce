/** `atoll up` on a simulated node, for tests of the process as a whole. */
import { simulateNode } from '@atoll/simulated-node/node'
import { runServer } from '../main.ts'

await runServer(process.env, {
  async startNode(_, { progress }) {
    progress('preparing', 0.5)
    if (process.env['SIMULATE'] === 'slow start') await new Promise((r) => setTimeout(r, 60_000))
    if (process.env['SIMULATE'] === 'crash') setTimeout(() => Promise.reject(new Error('boom')), 50)
    const node = simulateNode()
    return {
      transport: node.transport,
      async close() {
        if (process.env['SIMULATE'] === 'stuck close') await new Promise(() => {})
        if (process.env['SIMULATE'] === 'failing close') throw new Error('no descriptor left')
      },
    }
  },
  stepLimitMs: 600_000,
}).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`)
  process.exitCode = 1
})
