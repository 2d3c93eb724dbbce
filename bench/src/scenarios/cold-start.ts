/**
 * From the wish for a sandbox to the first byte that a command in it printed when nothing is ready: from a checkpoint
 * that was taken once, and by a boot. Against the runtime alone running the same command on the same files.
 */
import { printCommand, timeCreate } from '../first-output.ts'
import { interleave, programs, runtimes } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import type { CloudKind } from '../test-bed.ts'

/** runc keeps no memory, so there is nothing to restore. */
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
