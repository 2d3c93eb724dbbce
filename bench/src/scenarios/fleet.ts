/**
 * Fleets of simulated nodes, from ten to a thousand with fifty sandboxes each. Transport, store and api are real, so the
 * rows show what the size of a fleet costs. The fleets run one after the other, since all together would not fit on a machine.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../../../tools/postgres.ts'
import type { PostgresServer } from '../../../tools/postgres.ts'
import type { CreatedSandbox } from '../fleet/calls.ts'
import { startCpuTime } from '../fleet/cpu-time.ts'
import type { CpuTime } from '../fleet/cpu-time.ts'
import { createChoice } from '../fleet/node-choice.ts'
import { startSimulatedFleet } from '../fleet/simulated-fleet.ts'
import type { FleetPart, SimulatedFleet } from '../fleet/simulated-fleet.ts'
import type { Row } from '../report.ts'
import { collectSamples, timed } from '../scenario.ts'
import type { Samples, Scenario, ScenarioContext } from '../scenario.ts'
import { residentMb } from '../usage.ts'

/** `ATOLL_BENCH_NODES`: numbers of nodes, comma separated. */
const nodeCounts = (process.env['ATOLL_BENCH_NODES'] ?? '10,100,300,1000').split(',').map(Number)
/** `ATOLL_BENCH_CREATES_PER_NODE`: sandboxes that are created. The rest of the fifty are copies. */
const createsPerNode = Number(process.env['ATOLL_BENCH_CREATES_PER_NODE'] ?? 5)
const sandboxesPerNode = 50
const clients = 20
const createsPerClient = 10
const choices = 1_000
const fillStep = 500
const idleMs = 5_000

const names = {
  alone: (count: number) => `create until 201, ${count} nodes`,
  queued: (count: number) => `create beside ${clients - 1} others, ${count} nodes`,
  chosen: (count: number) => `choice of a node, ${count} nodes`,
  rate: (count: number) => `creates, ${clients} clients, ${count} nodes`,
  filling: (count: number) => `creates while ${count} nodes fill`,
  restarted: (count: number) => `restart of the api, ${count} nodes`,
  joined: (count: number) => `joins of ${count} nodes`,
  perNode: (count: number) => `sandboxes of a node, ${count} nodes`,
}
const parts = ['api', 'nodes', 'database'] as const satisfies readonly FleetPart[]
/** Processes of the database share most of their memory. */
const resident = ['api', 'nodes'] as const satisfies readonly FleetPart[]
const partName = (part: FleetPart, count: number) => `${part}, ${count} nodes`

export const fleet: Scenario = {
  name: 'fleet',
  rounds: 10,
  async measure(context) {
    await using opened = new AsyncDisposableStack()
    const folder = await mkdtemp('/var/tmp/atoll-bench-')
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    const postgres = await startPostgres()
    opened.defer(() => postgres.close())
    const samples = {
      ...{ all: collectSamples(), perCreate: collectSamples() },
      ...{ cpu: collectSamples(), memory: collectSamples() },
    }
    for (const count of nodeCounts)
      await measureFleet(context, count, { postgres, folder, samples })
    return reportOf(context, samples)
  },
}

interface FleetSamples {
  readonly all: Samples
  /** CPU time that a create takes. */
  readonly perCreate: Samples
  readonly cpu: Samples
  readonly memory: Samples
}

function reportOf({ rounds }: ScenarioContext, { all, perCreate, cpu, memory }: FleetSamples) {
  const [first = 0] = nodeCounts
  const series = (name: (count: number) => string, from = all): Row[] =>
    nodeCounts.map((count) => from.row(name(count), count === first ? undefined : name(first)))
  const ofParts = (shown: readonly FleetPart[], from: Samples) =>
    shown.flatMap((part) => series((count) => partName(part, count), from))
  const { alone, queued, chosen, rate, filling, joined, restarted, perNode } = names
  const size = `${sandboxesPerNode} sandboxes on each node, ${rounds} rounds`
  return [
    {
      scenario: 'fleet',
      description: `POST /v2/sandboxes through one api, ${size}`,
      rows: [alone, queued, chosen, restarted].flatMap((name) => series(name)),
    },
    {
      scenario: 'fleet-throughput',
      description: `Creates and joins per second of one api, ${size}; more is better`,
      unit: '/s',
      rows: [rate, filling, joined].flatMap((name) => series(name)),
    },
    {
      scenario: 'fleet-spread',
      description: `Sandboxes of each node after ${createsPerNode} creates for each`,
      unit: '',
      rows: nodeCounts.map((count) => all.row(perNode(count))),
    },
    {
      scenario: 'fleet-cpu-per-create',
      description: `CPU time of a create, without the use without requests, ${size}`,
      rows: ofParts(parts, perCreate),
    },
    {
      scenario: 'fleet-cpu',
      description: `CPU use without requests in percent of one core, ${size}`,
      unit: '%',
      rows: ofParts(parts, cpu),
    },
    {
      scenario: 'fleet-memory',
      description: `Resident memory of the processes, ${size}`,
      unit: 'MB',
      rows: ofParts(resident, memory),
    },
  ]
}

async function measureFleet(
  context: ScenarioContext,
  count: number,
  given: {
    readonly postgres: PostgresServer
    readonly folder: string
    readonly samples: FleetSamples
  },
): Promise<void> {
  const { rounds, signal, progress } = context
  const { all } = given.samples
  progress(`starting a fleet of ${count} simulated nodes`)
  const began = performance.now()
  await using started = await startSimulatedFleet(count, given)
  all.record(names.joined(count), (count * 1000) / (performance.now() - began))
  await fill(all, started, count, context)
  const choose = await createChoice(count, choices)
  for (let round = 1; round <= rounds; round += 1) {
    signal.throwIfAborted()
    progress(`${count} nodes: round ${round} of ${rounds}`)
    await measureRound(given.samples, started, count)
    all.record(names.chosen(count), (await timed(choose)) / choices)
  }
}

/** Creates sandboxes, and records the rate of each step and how they are spread. Copies fill the rest. */
async function fill(
  to: Samples,
  started: SimulatedFleet,
  count: number,
  { signal, progress }: ScenarioContext,
): Promise<void> {
  const total = count * createsPerNode
  for (let made = 0; made < total; made += fillStep) {
    const step = Math.min(fillStep, total - made)
    if (made % (10 * fillStep) === 0) progress(`${count} nodes: ${made} of ${total} sandboxes`)
    const ms = await timed(() =>
      share(step, async () => {
        signal.throwIfAborted()
        await started.create()
      }),
    )
    to.record(names.filling(count), (step * 1000) / ms)
  }
  for (const found of await started.sandboxCounts()) to.record(names.perNode(count), found)
  progress(`${count} nodes: copying the sandboxes`)
  const copies = Math.round(sandboxesPerNode / createsPerNode) - 1
  to.record(names.restarted(count), await started.copySandboxes(copies))
}

/** Measures the parts beside `work`. Returns the CPU time of each. */
async function withCpuTimes(
  started: SimulatedFleet,
  work: () => Promise<unknown>,
): Promise<Readonly<Record<FleetPart, CpuTime>>> {
  const pids = await started.pids()
  const [api, nodes, database] = await Promise.all(parts.map((part) => startCpuTime(pids[part])))
  await work()
  if (!api || !nodes || !database) throw new Error('a part of the fleet is missing')
  return { api: await api(), nodes: await nodes(), database: await database() }
}

async function measureRound(to: FleetSamples, started: SimulatedFleet, count: number) {
  // Nothing but heartbeats and the visits of the api.
  const idle = await withCpuTimes(started, () => sleep(idleMs))
  const pids = await started.pids()
  for (const part of parts) to.cpu.record(partName(part, count), idle[part].percent)
  for (const part of resident) {
    for (const pid of pids[part]) to.memory.record(partName(part, count), await residentMb(pid))
  }
  const made: CreatedSandbox[] = []
  const create = async () => void made.push(await started.create())
  to.all.record(names.alone(count), await timed(create))
  const total = clients * createsPerClient
  const busy = await withCpuTimes(started, () =>
    share(total, async () => to.all.record(names.queued(count), await timed(create))),
  )
  to.all.record(names.rate(count), (total * 1000) / busy.api.elapsedMs)
  for (const part of parts) {
    const { usedMs, elapsedMs } = busy[part]
    const forCreates = usedMs - (elapsedMs * idle[part].percent) / 100
    to.perCreate.record(partName(part, count), Math.max(0, forCreates) / total)
  }
  const left = made.values()
  await share(made.length, async () => {
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
