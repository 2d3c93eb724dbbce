/**
 * 100 creates at once: time until the last sandbox runs, and peak memory of the server. All must succeed. The baseline
 * is 100 runs of `true` at once by the bare runtime.
 */
import { startCloud } from '@atoll/system-tests/http-cloud'
import type { RuntimeName } from '../baselines.ts'
import { killSandbox } from '../first-output.ts'
import { waitForFullPool } from '../pool.ts'
import { collectSamples, interleave, programs, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import { residentMb, watchPeak } from '../usage.ts'

const size = 100
/** The default pool size, so that most sandboxes are created on demand. */
const settings = { ATOLL_POOL_MEMORY_MB: '256', ATOLL_BASE_MEMORY_MB: '512' }

export const burst: Scenario = {
  name: 'burst',
  rounds: 1,
  async measure(context) {
    const baselines = await context.testBed.baselines()
    await using opened = new AsyncDisposableStack()
    const memory = collectSamples()
    const measurements = []
    for (const runtime of runtimes) {
      const cloud = opened.use(await startCloud({ ATOLL_RUNTIME: runtime, ...settings }))
      const serverMb = () => residentMb(cloud.installation.pid())
      measurements.push(
        async ({ record }: Samples) => {
          const run = () => baselines.run(runtime, ['/bin/true'])
          record(raw(runtime), await timed(() => Promise.all(Array.from({ length: size }, run))))
        },
        async ({ record }: Samples) => {
          await waitForFullPool(cloud)
          memory.record(before(runtime), await serverMb())
          const peak = watchPeak(serverMb)
          const began = performance.now()
          const create = async () => {
            const made = await cloud.createSandbox()
            record(each(runtime), performance.now() - began)
            return made
          }
          const results = await Promise.allSettled(Array.from({ length: size }, create))
          memory.record(highest(runtime), await peak.stop())
          const failed = results.filter((result) => result.status === 'rejected')
          if (failed[0])
            throw new Error(`${failed.length} of ${size} creates failed`, {
              cause: failed[0].reason,
            })
          record(atoll(runtime), performance.now() - began)
          const sandboxes = results.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
          await Promise.all(sandboxes.map(({ sandboxID }) => killSandbox(cloud, sandboxID)))
        },
      )
    }
    const { row } = await interleave(context, measurements, { warmUp: false })
    return [
      {
        scenario: 'burst',
        description: `${size} creates at once, until all run, ${context.rounds} rounds`,
        rows: runtimes.flatMap((runtime) => [
          row(raw(runtime)),
          row(atoll(runtime), raw(runtime)),
          row(each(runtime)),
        ]),
      },
      {
        scenario: 'burst-memory',
        description: `The server process (api, edge and node) during ${size} creates at once`,
        unit: 'MiB',
        rows: runtimes.flatMap((runtime) => [
          memory.row(before(runtime)),
          memory.row(highest(runtime), before(runtime)),
        ]),
      },
    ]
  },
}

const raw = (runtime: RuntimeName) => `${size} x ${programs[runtime]} run true`
const atoll = (runtime: RuntimeName) => `Atoll, ${runtime}: all run`
const each = (runtime: RuntimeName) => `Atoll, ${runtime}: each until 201`
const before = (runtime: RuntimeName) => `server, ${runtime}: before`
const highest = (runtime: RuntimeName) => `server, ${runtime}: peak`
