/**
 * Time from the create request to the first output of a command with an empty pool: restored from a checkpoint, and
 * booted. The baseline is the bare runtime with the same command on the same files.
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
      samples.record(raw(runtime), await baselines.firstByte(runtime, printCommand))
    })
    for (const { runtime, kind, name } of variants) {
      const cloud = await testBed.cloud(runtime, kind)
      measurements.push(async ({ record }) => {
        const { createdMs, printedMs } = await timeCreate(cloud)
        record(name, printedMs)
        record(createPart(name), createdMs)
      })
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'cold-start',
        description: `From POST /v2/sandboxes to the first byte of \`${printCommand.join(' ')}\`, nothing ready, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [
          row(raw(runtime)),
          ...variants
            .filter((variant) => variant.runtime === runtime)
            .flatMap(({ name }) => [row(name, raw(runtime)), row(createPart(name))]),
        ]),
      },
    ]
  },
}

const raw = (runtime: (typeof runtimes)[number]) => `${programs[runtime]} run`
const createPart = (name: string) => `${name}: until 201`
