/** Measures the time from the start of the server's process, on data of an earlier start, to its first reply. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const baseline = 'bare HTTP server on Node.js'

export const serverStart: Scenario = {
  name: 'server-start',
  rounds: 10,
  async measure(context) {
    const { testBed, rounds } = context
    const measurements = runtimes.map((runtime) => async ({ record }: Samples) => {
      const { installation } = await testBed.cloud(runtime)
      await installation.interrupt()
      record(rowName(runtime), await timed(() => installation.start()))
    })
    const bare = async ({ record }: Samples) => record(baseline, await timeBareServer())
    const { row } = await interleave(context, [bare, ...measurements])
    return [
      {
        scenario: 'server-start',
        description: `From the start of the process to its first reply, without sandboxes, ${rounds} rounds, interleaved`,
        rows: [row(baseline), ...runtimes.map((runtime) => row(rowName(runtime), baseline))],
      },
    ]
  },
}

const rowName = (runtime: (typeof runtimes)[number]) => `Atoll, ${runtime}`

async function timeBareServer(): Promise<number> {
  const port = await freePort()
  const program = `http.createServer((_, reply) => reply.end()).listen(${port}, '127.0.0.1')`
  let child: ReturnType<typeof spawn> | undefined
  try {
    return await timed(() => {
      child = spawn(process.execPath, ['--eval', program], { stdio: 'ignore' })
      const isReady = () =>
        fetch(`http://127.0.0.1:${port}`).then(
          (reply) => reply.ok,
          () => false,
        )
      // The same polling as for the server.
      return waitFor('the bare server', isReady, { intervalMs: 50 })
    })
  } finally {
    child?.kill('SIGKILL')
    if (child) await once(child, 'close')
  }
}
