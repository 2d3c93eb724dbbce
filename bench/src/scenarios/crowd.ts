/**
 * A create from the warm pool while 1, 50 and 150 idle sandboxes run. Each round also runs `true` with the bare runtime,
 * which shows how much of a change is due to the machine.
 */
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { startCloud } from '@atoll/system-tests/http-cloud'
import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import type { RuntimeName } from '../baselines.ts'
import { timeCreate } from '../first-output.ts'
import { waitForFullPool } from '../pool.ts'
import type { Row } from '../report.ts'
import { interleave, programs, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario, ScenarioContext } from '../scenario.ts'

const [first, ...more] = [1, 50, 150] as const
const startsAtOnce = 8

const settings = {
  ATOLL_POOL_MEMORY_MB: '512',
  ATOLL_BASE_MEMORY_MB: '256',
  ATOLL_TEAM_CONCURRENT_SANDBOXES: '1000',
}

export const crowd: Scenario = {
  name: 'crowd',
  rounds: 10,
  async measure(context) {
    const rows = []
    // Runtimes are measured one after the other, so that idle sandboxes of one do not slow down the other.
    for (const runtime of runtimes) rows.push(...(await measureRuntime(context, runtime)))
    const description = `POST /v2/sandboxes with a full pool while others run idle, ${context.rounds} rounds each, compared with one beside it`
    return [{ scenario: 'crowd', description, rows }]
  },
}

async function measureRuntime(context: ScenarioContext, runtime: RuntimeName): Promise<Row[]> {
  const baselines = await context.testBed.baselines()
  await using cloud = await startCloud({ ATOLL_RUNTIME: runtime, ...settings })
  const rows: Row[] = []
  let running = 0
  for (const count of [first, ...more]) {
    context.progress(`${count} beside it, ${runtime}`)
    await add(cloud, count - running)
    running = count
    const { row } = await interleave(context, [
      async ({ record }: Samples) => {
        record(raw(runtime, count), await timed(() => baselines.run(runtime, ['/bin/true'])))
      },
      async ({ record }: Samples) => {
        await waitForFullPool(cloud)
        const { createdMs, printedMs } = await timeCreate(cloud)
        record(created(runtime, count), createdMs)
        record(printed(runtime, count), printedMs)
      },
    ])
    for (const name of [raw, created, printed]) {
      rows.push(row(name(runtime, count), ...(count === first ? [] : [name(runtime, first)])))
    }
  }
  return rows
}

async function add(cloud: HttpCloud, count: number): Promise<void> {
  const gate = limitConcurrency(startsAtOnce)
  const create = () => gate(() => cloud.createSandbox({ timeout: sandboxTimeoutSeconds }))
  await Promise.all(Array.from({ length: count }, create))
}

const raw = (runtime: RuntimeName, count: number) => `${programs[runtime]} run true, ${count}`
const created = (runtime: RuntimeName, count: number) => `Atoll, ${runtime}: until 201, ${count}`
const printed = (runtime: RuntimeName, count: number) =>
  `Atoll, ${runtime}: until first output, ${count}`

const sandboxTimeoutSeconds = 3600
