/**
 * A sandbox from the pool, until the `201` and until the first output of a command in it, against the runtime alone
 * running `true` to its end on the same files. Each is taken from a pool that is full and at rest.
 */
import { timeCreate } from '../first-output.ts'
import { waitForFullPool } from '../pool.ts'
import { interleave, programs, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

export const warmCreate: Scenario = {
  name: 'warm-create',
  rounds: 50,
  async measure(context) {
    const { testBed, rounds } = context
    const baselines = await testBed.baselines()
    const measurements = []
    for (const runtime of runtimes) {
      const cloud = await testBed.cloud(runtime, 'pooled')
      measurements.push(
        async ({ record }: Samples) => {
          record(raw(runtime), await timed(() => baselines.run(runtime, ['/bin/true'])))
        },
        async ({ record }: Samples) => {
          await waitForFullPool(cloud)
          const { createdMs, printedMs } = await timeCreate(cloud)
          record(created(runtime), createdMs)
          record(printed(runtime), printedMs)
        },
      )
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'warm-create',
        description: `POST /v2/sandboxes with a full pool, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [
          row(raw(runtime)),
          row(created(runtime), raw(runtime)),
          row(printed(runtime), raw(runtime)),
        ]),
      },
    ]
  },
}

type RuntimeName = (typeof runtimes)[number]

const raw = (runtime: RuntimeName) => `${programs[runtime]} run true`
const created = (runtime: RuntimeName) => `Atoll, ${runtime}: until 201`
const printed = (runtime: RuntimeName) => `Atoll, ${runtime}: until first output`
