/**
 * Measures the time from the create request to the first output of a command while the warm pool is empty. Sandboxes
 * are restored from a checkpoint or booted. The baseline is the runtime without Atoll: same command, same files.
 */
import { printCommand, timeCreate } from '../first-output.ts'
import { interleave, programs, runtimes } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import type { CloudKind } from '../test-bed.ts'

/** runc cannot save memory, so it always boots. */
const variants = [
  { runtime: 'gvisor', kind: 'restores', name: 'Atoll, gvisor, from a checkpoint' },
  { runtime: 'gvisor', kind: 'boots', name: 'Atoll, gvisor, booted' },
  { runtime: 'runc', kind: 'boots', name: 'Atoll, runc, booted' },
] as const satisfies readonly { runtime: string; kind: CloudKind; name: string }[]

export const coldStart: Scenario = {
  name: 'cold-start',
  rounds: 10,
  async measure(context) {
    const { testBed, rounds } = context
    const baselines = await testBed.baselines()
    const measurements = runtimes.map((runtime) => async (samples: Samples) => {
      samples.record(baselineRow(runtime), await baselines.firstByte(runtime, printCommand))
    })
    for (const { runtime, kind, name } of variants) {
      const cloud = await testBed.cloud(runtime, kind)
      measurements.push(async ({ record }) => {
        const { createdMs, printedMs } = await timeCreate(cloud)
        record(name, printedMs)
        record(createRow(name), createdMs)
      })
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'cold-start',
        description: `From POST /v2/sandboxes to the first byte of \`${printCommand.join(' ')}\`, warm pool empty, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [
          row(baselineRow(runtime)),
          ...variants
            .filter((variant) => variant.runtime === runtime)
            .flatMap(({ name }) => [row(name, baselineRow(runtime)), row(createRow(name))]),
        ]),
      },
    ]
  },
}

const baselineRow = (runtime: (typeof runtimes)[number]) => `${programs[runtime]} run`
const createRow = (name: string) => `${name}: until 201`
