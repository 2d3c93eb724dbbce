/** 50 commands at once in one sandbox. Baselines: 50 `exec`s of the bare runtime, and one shell that starts all. */
import type { RuntimeName } from '../baselines.ts'
import { interleave, programs, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const count = 50
const command = ['/bin/bash', '-l', '-c', 'true'] as const
const shell = `for i in $(seq ${count}); do ${command.join(' ')} & done; wait`

export const concurrentCommands: Scenario = {
  name: 'concurrent-commands',
  rounds: 3,
  async measure(context) {
    const { testBed, rounds } = context
    await using opened = new AsyncDisposableStack()
    const measurements = []
    for (const runtime of runtimes) {
      const bare = opened.use(await (await testBed.baselines()).startBare(runtime))
      const { sdk } = opened.use(await testBed.sandbox(runtime))
      const measure = (name: string, work: () => Promise<unknown>) => async (samples: Samples) =>
        samples.record(name, await timed(work))
      measurements.push(
        measure(execs(runtime), () => times(() => bare.exec(command))),
        measure(oneShell(runtime), () => bare.exec(['/bin/bash', '-c', shell])),
        measure(atoll(runtime), () => times(() => sdk.commands.run('true'))),
      )
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'concurrent-commands',
        description: `${count} times commands.run('true') at once in one sandbox, until all ended, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [
          row(oneShell(runtime)),
          row(execs(runtime)),
          row(atoll(runtime), execs(runtime)),
        ]),
      },
    ]
  },
}

const execs = (runtime: RuntimeName) => `${count} x ${programs[runtime]} exec`
const oneShell = (runtime: RuntimeName) => `one shell by ${programs[runtime]} exec`
const atoll = (runtime: RuntimeName) => `Atoll, ${runtime}`

function times(work: () => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, work))
}
