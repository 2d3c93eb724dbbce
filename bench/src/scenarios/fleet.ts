/**
 * Creates through the api of a fleet with a thousand simulated nodes and many sandboxes, against a fleet with one node.
 * Transport, store and api are real, so the rows show what the size of a fleet costs. The choice of a node is also measured
 * alone.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { startPostgres } from '../../../tools/postgres.ts'
import { createChoice } from '../fleet/node-choice.ts'
import { collectSamples, interleave, timed } from '../scenario.ts'
import type { Samples, Scenario, ScenarioContext } from '../scenario.ts'
import { startSimulatedFleet } from '../fleet/simulated-fleet.ts'
import type { SimulatedFleet } from '../fleet/simulated-fleet.ts'

/** `ATOLL_BENCH_NODES` and `ATOLL_BENCH_SANDBOXES`: size of the large fleet. */
const nodeCounts = [1, Number(process.env['ATOLL_BENCH_NODES'] ?? 1_000)] as const
const sandboxCount = Number(process.env['ATOLL_BENCH_SANDBOXES'] ?? 50_000)
const clients = 20
const createsPerClient = 10
const choices = 1_000

const alone = (count: number) => `create until 201, ${count} nodes`
const queued = (count: number) => `create until 201 beside ${clients - 1} others, ${count} nodes`
const throughput = (count: number) => `creates, ${clients} clients, ${count} nodes`
const chosen = (count: number) => `choice of a node, ${count} nodes`
const memory = (count: number) => `api, ${count} nodes`
const filling = 'creates while the fleet fills'
const perNode = 'sandboxes of a node'

export const fleet: Scenario = {
  name: 'fleet',
  rounds: 30,
  async measure(context) {
    await using opened = new AsyncDisposableStack()
    const folder = await mkdtemp('/var/tmp/atoll-bench-')
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    const postgres = await startPostgres()
    opened.defer(() => postgres.close())
    const measurements = []
    const filled = collectSamples()
    for (const count of nodeCounts) {
      context.progress(`starting a fleet of ${count} simulated nodes`)
      const started = opened.use(await startSimulatedFleet(count, { postgres, folder }))
      if (count === nodeCounts[1]) await fill(filled, started, context)
      const choose = await createChoice(count, choices)
      measurements.push(
        (to: Samples) => measureCreates(to, started, count),
        async (to: Samples) => to.record(chosen(count), (await timed(choose)) / choices),
      )
    }
    const { row } = await interleave(context, measurements)
    const [few, many] = nodeCounts
    const pair = (name: (count: number) => string) => [row(name(few)), row(name(many), name(few))]
    const { rounds } = context
    const size = `${many} nodes with ${sandboxCount} sandboxes`
    return [
      {
        scenario: 'fleet',
        description: `POST /v2/sandboxes through one api, ${size}, ${rounds} rounds, interleaved`,
        rows: [...pair(alone), ...pair(queued), ...pair(chosen)],
      },
      {
        scenario: 'fleet-throughput',
        description: `Creates per second of one api, ${size}, ${rounds} rounds; more is better`,
        unit: '/s',
        rows: [...pair(throughput), filled.row(filling)],
      },
      {
        scenario: 'fleet-spread',
        description: `Sandboxes of each node after ${sandboxCount} creates`,
        unit: '',
        rows: [filled.row(perNode)],
      },
      {
        scenario: 'fleet-memory',
        description: `Resident memory, ${size}, ${rounds} rounds`,
        unit: 'MB',
        rows: pair(memory),
      },
    ]
  },
}

/** Creates the sandboxes of the large fleet, and records the rate of each thousand and how they are spread. */
async function fill(
  to: Samples,
  started: SimulatedFleet,
  { signal, progress }: ScenarioContext,
): Promise<void> {
  const step = Math.min(1_000, sandboxCount)
  for (let made = 0; made < sandboxCount; made += step) {
    progress(`${made} of ${sandboxCount} sandboxes`)
    const ms = await timed(() =>
      share(step, async () => {
        signal.throwIfAborted()
        await started.create()
      }),
    )
    to.record(filling, (step * 1000) / ms)
  }
  for (const count of await started.sandboxCounts()) to.record(perNode, count)
}

async function measureCreates(to: Samples, started: SimulatedFleet, count: number): Promise<void> {
  const ids: string[] = []
  const create = async () => void ids.push(await started.create())
  to.record(alone(count), await timed(create))
  const total = clients * createsPerClient
  const ms = await timed(() =>
    share(total, async () => to.record(queued(count), await timed(create))),
  )
  to.record(throughput(count), (total * 1000) / ms)
  to.record(memory(count), await started.apiMemoryMb())
  const left = ids.values()
  await share(ids.length, async () => {
    const { value } = left.next()
    if (value !== undefined) await started.kill(value)
  })
}

/** Runs `work` this often, by all clients. */
async function share(times: number, work: () => Promise<void>): Promise<void> {
  let left = times
  const client = async () => {
    while (left > 0) {
      left -= 1
      await work()
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
}
