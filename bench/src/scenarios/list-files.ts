/** Lists a folder of 10,000 files through the SDK. The baseline is `find -ls`, which prints as much per file. */
import type { RuntimeName } from '../baselines.ts'
import { interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const count = 10_000
const folder = '/home/user/many'

export const listFiles: Scenario = {
  name: 'list-files',
  rounds: 5,
  async measure(context) {
    const { testBed, rounds } = context
    await using opened = new AsyncDisposableStack()
    const measurements = []
    for (const runtime of runtimes) {
      const { sdk } = opened.use(await testBed.sandbox(runtime))
      await sdk.commands.run(`mkdir ${folder} && cd ${folder} && seq ${count} | xargs touch`)
      measurements.push(
        async ({ record }: Samples) => {
          const ms = await timed(() => sdk.commands.run(`find ${folder} -mindepth 1 -ls`))
          record(find(runtime), ms)
        },
        async ({ record }: Samples) => {
          const began = performance.now()
          const { length } = await sdk.files.list(folder)
          record(list(runtime), performance.now() - began)
          if (length !== count)
            throw new Error(`Expected ${count} entries, but the list has ${length}`)
        },
      )
    }
    const { row } = await interleave(context, measurements)
    return [
      {
        scenario: 'list-files',
        description: `A folder of ${count} files by the e2b SDK, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [
          row(find(runtime)),
          row(list(runtime), find(runtime)),
        ]),
      },
    ]
  },
}

const find = (runtime: RuntimeName) => `commands.run('find … -ls'), ${runtime}`
const list = (runtime: RuntimeName) => `files.list, ${runtime}`
