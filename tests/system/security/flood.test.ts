/** Clients without credentials that open as many connections as they can, while other clients work. */
import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { envdHeaders, openProcess, outputOf, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { floodKinds, startFlood } from './flood-client.ts'
import { send } from '../wire.ts'

const connectionsPerClient = 7_500
/** Low enough that the flood exceeds it on any machine, also on a slow one. */
const descriptorLimit = 2_048
/** Client connections that this limit leaves; the other descriptors serve sandboxes and the server itself. */
const maxConnections = 896

describe(
  `a flood of ${floodKinds.length * connectionsPerClient} connections`,
  { timeout: 600_000 },
  () => {
    let cloud: HttpCloud
    let url: string
    let sandbox: HttpSandbox
    before(async () => {
      cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor' }, { descriptorLimit })
      url = cloud.installation.url
      sandbox = await cloud.createSandbox()
    })
    after(() => cloud[Symbol.asyncDispose]())

    const start = (script: string) => openProcess(url, envdHeaders(sandbox), shell(script))
    const run = async (script: string) => outputOf(await (await start(script)).readRemaining())
    const isHealthy = async () => (await send(url, { path: '/health' })).status === 200

    test('does not stop other clients, and SIGTERM during it ends the server', async () => {
      const { installation } = cloud
      const stream = await start('mkfifo /tmp/fifo; echo ready; cat /tmp/fifo')
      await stream.readUntil(/ready/)
      const usageBefore = await usageOf(installation.pid())
      using floods = new DisposableStack()
      const clients = floodKinds.map((kind, index) =>
        floods.use(startFlood(kind, url, `127.0.0.${index + 2}`)),
      )

      let isFloodDone = false
      const flood = Promise.all(clients.map((client) => client.open(connectionsPerClient)))
      const floodEnd = flood.finally(() => (isFloodDone = true))
      let answers = 0
      for (; !isFloodDone; answers += 1) {
        assert.ok(await isHealthy(), `after ${answers} answers`)
        await sleep(100) // the flood needs the processor too
      }
      await floodEnd
      // The server answers this request only after it has accepted all earlier connections.
      assert.ok(await isHealthy())

      const usageUnderFlood = await usageOf(installation.pid())
      const connections = usageUnderFlood.descriptors - usageBefore.descriptors
      assert.ok(connections < maxConnections + 50, `${connections} connections are open`)
      assert.ok(connections > maxConnections / 2, `only ${connections} connections are open`)
      const growthMb = (usageUnderFlood.memoryKib - usageBefore.memoryKib) / 1024
      assert.ok(growthMb < 300, `the server has grown by ${growthMb} MB`)

      const newSandboxes = await Promise.all([cloud.createSandbox(), cloud.createSandbox()])
      for (const { sandboxID } of newSandboxes) {
        assert.equal((await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)).status, 204)
      }
      assert.equal(await run('echo one > /tmp/fifo; echo two'), 'two\n')
      await stream.readUntil(/one/)

      assert.equal(await installation.interrupt('SIGTERM'), 0)
      await installation.start()
      assert.equal(await run('echo still there'), 'still there\n')
    })
  },
)

interface Usage {
  readonly descriptors: number
  readonly memoryKib: number
}

async function usageOf(pid: number): Promise<Usage> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const [, memoryKib] = /^VmRSS:\s+(\d+) kB/m.exec(status) ?? []
  const descriptors = await readdir(`/proc/${pid}/fd`)
  return { descriptors: descriptors.length, memoryKib: Number(memoryKib) }
}
