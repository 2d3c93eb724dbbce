/** Round trip of one command through the SDK in a running sandbox. The baseline is `exec` of the bare runtime. */
import { interleave, programs, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

/** The process that the SDK starts for `commands.run('true')`. */
const command = ['/bin/bash', '-l', '-c', 'true'] as const

export const commandRoundTrip: Scenario = {
  name: 'command-round-trip',
  rounds: 20,
  async measure(context) {
    const { testBed, rounds } = context
    await using opened = new AsyncDisposableStack()
    const measurements = []
    for (const runtime of runtimes) {
      const bare = opened.use(await (await testBed.baselines()).startBare(runtime))
      const { sdk } = opened.use(await testBed.sandbox(runtime))
      measurements.push(
        async ({ record }: Samples) => record(raw(runtime), await timed(() => bare.exec(command))),
        async ({ record }: Samples) =>
          record(atoll(runtime), await timed(() => sdk.commands.run('true'))),
      )
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'command-round-trip',
        description: `commands.run('true') by the e2b SDK, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [row(raw(runtime)), row(atoll(runtime), raw(runtime))]),
      },
    ]
  },
}

const raw = (runtime: (typeof runtimes)[number]) => `${programs[runtime]} exec`
const atoll = (runtime: (typeof runtimes)[number]) => `Atoll, ${runtime}`
