/**
 * A sequence of an agent: one sandbox is forked four times, each copy runs a command that writes a file, three copies
 * are killed, and the fourth is snapshotted, paused and resumed. Ten sandboxes are created from its snapshot. The
 * baseline does the same with bare runsc, whose copies share files and have no network.
 */
import { envdHeaders, openProcess, shell } from '@atoll/system-tests/http-cloud'
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'
import { killSandbox, runFirstCommands } from '../first-output.ts'
import { waitForQuietNode } from '../pool.ts'
import { openRunscCommands } from '../runsc-checkpoints.ts'
import type { RawCopy, RunscCommands } from '../runsc-checkpoints.ts'
import { interleave } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const copies = 4
const descendants = 10
const timeout = 3600

export const agentDay: Scenario = {
  name: 'agent-day',
  rounds: 5,
  async measure(context) {
    const { testBed, rounds } = context
    await using opened = new AsyncDisposableStack()
    const { cloud, handle } = opened.use(await testBed.sandbox('gvisor', 'pooled'))
    // A booted sandbox: its bundle names its real root, which runsc needs for copies.
    const raw = opened.use(await testBed.sandbox('gvisor'))
    await runFirstCommands(cloud, handle)
    await runFirstCommands(raw.cloud, raw.handle)
    const commands = await openRunscCommands(raw.cloud, raw.handle)
    const { row } = await interleave(context, [
      (samples) => runWithRunsc(samples, commands),
      async (samples) => {
        await waitForQuietNode(cloud)
        await runWithAtoll(samples, cloud, handle)
        await waitForQuietNode(cloud)
      },
    ])
    return [
      {
        scenario: 'agent-day',
        description: `Day of an agent: fork x${copies}, a command in each, 3 kills, snapshot, pause, resume, ${descendants} creates, ${rounds} rounds, interleaved`,
        rows: [
          ...steps.map((step) => row(`runsc: ${step}`)),
          row('runsc: total'),
          ...steps.map((step) => row(`Atoll: ${step}`, `runsc: ${step}`)),
          row('Atoll: total', 'runsc: total'),
        ],
      },
    ]
  },
}

const steps = [
  'fork x4',
  'a command in each',
  'three kills',
  'snapshot',
  'pause',
  'resume',
  '10 creates from the snapshot',
] as const

/** Records the time of each step of one day, and the total. */
function stopwatch({ record }: Samples, who: string) {
  const began = performance.now()
  return {
    async measure<T>(step: (typeof steps)[number], work: () => Promise<T>): Promise<T> {
      const stepBegan = performance.now()
      const result = await work()
      record(`${who}: ${step}`, performance.now() - stepBegan)
      return result
    },
    end: () => record(`${who}: total`, performance.now() - began),
  }
}

async function runWithAtoll(
  samples: Samples,
  cloud: HttpCloud,
  source: HttpSandbox,
): Promise<void> {
  const { measure, end } = stopwatch(samples, 'Atoll')
  const post = async (path: string, body: object) => {
    const { status, text } = await cloud.platform('POST', path, body)
    if (status < 200 || status > 299) throw new Error(`POST ${path}: ${status} ${text}`)
    return text
  }
  const forked: { readonly sandbox: HttpSandbox }[] = JSON.parse(
    await measure('fork x4', () =>
      post(`/sandboxes/${source.sandboxID}/fork`, { count: copies, timeout }),
    ),
  )
  const made = forked.map(({ sandbox }) => sandbox)
  await measure('a command in each', () => Promise.all(made.map((one) => writeFile(cloud, one))))
  const [winner, ...losers] = made
  if (!winner || losers.length !== copies - 1) throw new Error(`Only ${made.length} copies run`)
  const kill = ({ sandboxID }: HttpSandbox) => killSandbox(cloud, sandboxID)
  await measure('three kills', () => Promise.all(losers.map(kill)))
  const path = `/sandboxes/${winner.sandboxID}`
  const snapshot = await measure('snapshot', () => post(`${path}/snapshots`, {}))
  await measure('pause', () => post(`${path}/pause`, {}))
  await measure('resume', () => post(`${path}/connect`, { timeout }))
  const { snapshotID: templateID }: { readonly snapshotID: string } = JSON.parse(snapshot)
  const created = await measure('10 creates from the snapshot', () =>
    Promise.all(
      Array.from({ length: descendants }, () => cloud.createSandbox({ templateID, timeout })),
    ),
  )
  end()
  await Promise.all([winner, ...created].map(kill))
  await cloud.platform('DELETE', `/templates/${templateID.split(':')[0]}`)
}

async function writeFile({ installation }: HttpCloud, sandbox: HttpSandbox): Promise<void> {
  const process = await openProcess(installation.url, envdHeaders(sandbox), shell(command('/tmp')))
  await process.readRemaining()
}

async function runWithRunsc(samples: Samples, commands: RunscCommands): Promise<void> {
  const { prepare, checkpoint, restore, exec, end: endCopy } = commands
  const prepared = (count: number) => Promise.all(Array.from({ length: count }, prepare))
  const made = await prepared(copies)
  const created = await prepared(descendants)
  const resumed = await prepare()
  const restoreAll = (all: readonly RawCopy[], name: string) =>
    Promise.all(all.map((copy) => restore(copy, name)))
  const { measure, end } = stopwatch(samples, 'runsc')
  await measure('fork x4', async () => {
    await checkpoint('forked')
    await restoreAll(made, 'forked')
  })
  await measure('a command in each', () =>
    Promise.all(made.map((copy) => exec(copy, ['/bin/bash', '-c', command(`/tmp/${copy.id}`)]))),
  )
  const [winner, ...losers] = made
  if (!winner) throw new Error('No copy runs')
  await measure('three kills', () => Promise.all(losers.map(endCopy)))
  await measure('snapshot', () => checkpoint('snapshot', winner))
  await measure('pause', async () => {
    await checkpoint('paused', winner)
    await endCopy(winner)
  })
  await measure('resume', () => restore(resumed, 'paused'))
  await measure('10 creates from the snapshot', () => restoreAll(created, 'snapshot'))
  end()
  await Promise.all([resumed, ...created].map(endCopy))
}

/** Each copy of the baseline writes to a file of its own, since the copies share their files. */
function command(path: string): string {
  return `echo done > ${path}-result`
}
