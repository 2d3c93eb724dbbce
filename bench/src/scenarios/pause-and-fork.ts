/**
 * Pause, resume, fork, and creates from a snapshot. The baseline is `runsc checkpoint` and `runsc restore` of a sandbox
 * that is the same. runc saves files only, so a resume or a fork boots, and the baseline is `runc run true`.
 *
 * Under gVisor, one installation makes blank cells by demand, as a usual one does, and the other one has no memory for
 * pools: each restore there makes its own cell.
 */
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'
import { killSandbox, runFirstCommands, runUntilFirstOutput } from '../first-output.ts'
import { waitForQuietNode } from '../pool.ts'
import { openRunscCheckpoints } from '../runsc-checkpoints.ts'
import { interleave, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import type { TestBed } from '../test-bed.ts'

type Measurement = (samples: Samples) => Promise<void>

const counts = [1, 10] as const

/** The installations that are measured, by the name of their rows. */
const installations = [
  { name: 'gvisor', runtime: 'gvisor', kind: 'pooled' },
  { name: 'gvisor without pools', runtime: 'gvisor', kind: 'boots' },
  { name: 'runc', runtime: 'runc', kind: 'boots' },
] as const

interface Subject {
  readonly name: string
  readonly cloud: HttpCloud
  readonly keepsMemory: boolean
  readonly hasPools: boolean
}

export const pauseAndFork: Scenario = {
  name: 'pause-and-fork',
  rounds: 5,
  async measure(context) {
    const { testBed, rounds } = context
    const baselines = await testBed.baselines()
    await using opened = new AsyncDisposableStack()
    const measurements: Measurement[] = [
      async ({ record }) => {
        record(rawRun, await timed(() => baselines.run('runc', ['/bin/true'])))
      },
      await checkpointWithRunsc(testBed, opened),
    ]
    for (const { name, runtime, kind } of installations) {
      const { cloud, handle: source } = opened.use(await testBed.sandbox(runtime, kind))
      const { handle: pausedSandbox } = opened.use(await testBed.sandbox(runtime, kind))
      for (const sandbox of [source, pausedSandbox]) await runFirstCommands(cloud, sandbox)
      const subject = {
        ...{ name, cloud, keepsMemory: runtime === 'gvisor', hasPools: kind === 'pooled' },
      }
      const all = [
        pauseAndResume(subject, pausedSandbox),
        createFromSnapshot(subject, source),
        ...counts.map((count) => fork(subject, source, count)),
      ]
      measurements.push(...all.map((measurement) => whenQuiet(cloud, measurement)))
    }
    const { row } = await interleave(context, measurements)
    const rowsOf = (name: string) => [
      row(`Atoll, ${name}: pause`, rawCheckpoint),
      row(`Atoll, ${name}: resume`, rawRestore(1)),
      row(`Atoll, ${name}: resume until first output`, rawRestore(1)),
      row(`Atoll, ${name}: create from a snapshot`, rawRestore(1)),
      row(`Atoll, ${name}: fork x1`, rawBoth(1)),
      row(`Atoll, ${name}: fork x10`, rawBoth(10)),
    ]
    return [
      {
        scenario: 'pause-and-fork',
        description: `Pause, resume and fork of an idle sandbox, ${rounds} rounds, interleaved`,
        rows: [
          row(rawCheckpoint),
          row(rawRestore(1)),
          row(rawBoth(1)),
          row(rawBoth(10)),
          ...rowsOf('gvisor'),
          row(createFromUsed, rawRestore(1)),
          ...rowsOf('gvisor without pools'),
          row(rawRun),
          row('Atoll, runc: pause'),
          row('Atoll, runc: resume', rawRun),
          row('Atoll, runc: resume until first output', rawRun),
          row('Atoll, runc: create from a snapshot', rawRun),
          row('Atoll, runc: fork x1', rawRun),
          row('Atoll, runc: fork x10'),
        ],
      },
    ]
  },
}

const rawRun = 'runc run true'
const createFromUsed = 'Atoll, gvisor: third create from a snapshot'
const rawCheckpoint = 'runsc checkpoint'
const rawRestore = (count: number) => `runsc restore x${count}`
const rawBoth = (count: number) => `runsc checkpoint, restore x${count}`

/** A node that refills its pools would slow down what is measured next. */
function whenQuiet(cloud: HttpCloud, measurement: Measurement): Measurement {
  return async (samples) => {
    await waitForQuietNode(cloud)
    await measurement(samples)
    await waitForQuietNode(cloud)
  }
}

async function checkpointWithRunsc(
  testBed: TestBed,
  opened: AsyncDisposableStack,
): Promise<Measurement> {
  // A booted sandbox: its bundle names its real root, which runsc needs for copies.
  const { cloud, handle: source } = opened.use(await testBed.sandbox('gvisor'))
  await runFirstCommands(cloud, source)
  const copies = await openRunscCheckpoints(cloud, source)
  return async ({ record }) => {
    const checkpointMs = await copies.checkpoint()
    record(rawCheckpoint, checkpointMs)
    for (const count of counts) {
      const restoreMs = await copies.restore(count)
      record(rawRestore(count), restoreMs)
      record(rawBoth(count), checkpointMs + restoreMs)
    }
  }
}

function pauseAndResume(
  { name, cloud, keepsMemory: memory }: Subject,
  pausedSandbox: HttpSandbox,
): Measurement {
  const { sandboxID } = pausedSandbox
  return async ({ record }) => {
    const pauseMs = await timed(() => post(cloud, `/sandboxes/${sandboxID}/pause`, { memory }))
    record(`Atoll, ${name}: pause`, pauseMs)
    const began = performance.now()
    await post(cloud, `/sandboxes/${sandboxID}/connect`, { timeout: sandboxTimeoutSeconds })
    record(`Atoll, ${name}: resume`, performance.now() - began)
    const rest = await runUntilFirstOutput(cloud, pausedSandbox)
    record(`Atoll, ${name}: resume until first output`, performance.now() - began)
    await rest()
  }
}

/** Uses a new snapshot in each round: one that was used lately has a warm pool. */
function createFromSnapshot(
  { name, cloud, hasPools }: Subject,
  { sandboxID }: HttpSandbox,
): Measurement {
  return async ({ record }) => {
    const text = await post(cloud, `/sandboxes/${sandboxID}/snapshots`, {})
    const { snapshotID: templateID }: { readonly snapshotID: string } = JSON.parse(text)
    const create = async () => {
      const began = performance.now()
      const sandbox = await cloud.createSandbox({ templateID, timeout: sandboxTimeoutSeconds })
      const ms = performance.now() - began
      await killSandbox(cloud, sandbox.sandboxID)
      return ms
    }
    await waitForQuietNode(cloud)
    record(`Atoll, ${name}: create from a snapshot`, await create())
    if (hasPools) {
      await create()
      await waitForQuietNode(cloud)
      record(createFromUsed, await create())
    }
    await cloud.platform('DELETE', `/templates/${templateID}`)
  }
}

function fork({ name, cloud }: Subject, { sandboxID }: HttpSandbox, count: number): Measurement {
  return async ({ record }) => {
    const began = performance.now()
    const text = await post(cloud, `/sandboxes/${sandboxID}/fork`, {
      count,
      timeout: sandboxTimeoutSeconds,
    })
    record(`Atoll, ${name}: fork x${count}`, performance.now() - began)
    const copies: { readonly sandbox?: HttpSandbox }[] = JSON.parse(text)
    const made = copies.flatMap(({ sandbox }) => sandbox ?? [])
    if (made.length !== count) throw new Error(`Only ${made.length} of ${count} forks run: ${text}`)
    await Promise.all(made.map((copy) => killSandbox(cloud, copy.sandboxID)))
  }
}

async function post(cloud: HttpCloud, path: string, body: object): Promise<string> {
  const { status, text } = await cloud.platform('POST', path, body)
  if (status < 200 || status > 299) throw new Error(`POST ${path}: ${status} ${text}`)
  return text
}

const sandboxTimeoutSeconds = 3600
