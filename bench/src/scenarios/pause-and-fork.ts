/**
 * Pause, resume and fork. The baseline is `runsc checkpoint` and `runsc restore` of the same sandbox. runc saves files
 * only, so a resume or a fork boots, and the baseline is `runc run true`.
 */
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'
import type { RuntimeName } from '../baselines.ts'
import { killSandbox, runUntilFirstOutput } from '../first-output.ts'
import { openRunscCheckpoints } from '../runsc-checkpoints.ts'
import { interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

type Measurement = (samples: Samples) => Promise<void>

const counts = [1, 10] as const

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
    ]
    for (const runtime of runtimes) {
      const { cloud, handle: source } = opened.use(await testBed.sandbox(runtime))
      const { handle: pausedSandbox } = opened.use(await testBed.sandbox(runtime))
      measurements.push(pauseAndResume(runtime, cloud, pausedSandbox))
      for (const count of counts) measurements.push(fork(runtime, cloud, source, count))
      if (runtime === 'gvisor') measurements.push(await checkpointWithRunsc(cloud, source))
    }
    const { row } = await interleave(context, measurements)
    const name = (runtime: RuntimeName, what: string) => `Atoll, ${runtime}: ${what}`
    return [
      {
        scenario: 'pause-and-fork',
        description: `Pause, resume and fork of an idle sandbox, ${rounds} rounds, interleaved`,
        rows: [
          row(rawCheckpoint),
          row(name('gvisor', 'pause'), rawCheckpoint),
          row(rawRestore(1)),
          row(name('gvisor', 'resume'), rawRestore(1)),
          row(name('gvisor', 'resume until first output'), rawRestore(1)),
          row(rawBoth(1)),
          row(name('gvisor', 'fork x1'), rawBoth(1)),
          row(rawBoth(10)),
          row(name('gvisor', 'fork x10'), rawBoth(10)),
          row(rawRun),
          row(name('runc', 'pause')),
          row(name('runc', 'resume'), rawRun),
          row(name('runc', 'resume until first output'), rawRun),
          row(name('runc', 'fork x1'), rawRun),
          row(name('runc', 'fork x10')),
        ],
      },
    ]
  },
}

const rawRun = 'runc run true'
const rawCheckpoint = 'runsc checkpoint'
const rawRestore = (count: number) => `runsc restore x${count}`
const rawBoth = (count: number) => `runsc checkpoint, restore x${count}`

async function checkpointWithRunsc(cloud: HttpCloud, source: HttpSandbox): Promise<Measurement> {
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
  runtime: RuntimeName,
  cloud: HttpCloud,
  pausedSandbox: HttpSandbox,
): Measurement {
  const { sandboxID } = pausedSandbox
  const memory = runtime === 'gvisor'
  return async ({ record }) => {
    const pauseMs = await timed(() => post(cloud, `/sandboxes/${sandboxID}/pause`, { memory }))
    record(`Atoll, ${runtime}: pause`, pauseMs)
    const began = performance.now()
    await post(cloud, `/sandboxes/${sandboxID}/connect`, { timeout: sandboxTimeoutSeconds })
    record(`Atoll, ${runtime}: resume`, performance.now() - began)
    const rest = await runUntilFirstOutput(cloud, pausedSandbox)
    record(`Atoll, ${runtime}: resume until first output`, performance.now() - began)
    await rest()
  }
}

function fork(
  runtime: RuntimeName,
  cloud: HttpCloud,
  { sandboxID }: HttpSandbox,
  count: number,
): Measurement {
  return async ({ record }) => {
    const began = performance.now()
    const text = await post(cloud, `/sandboxes/${sandboxID}/fork`, {
      count,
      timeout: sandboxTimeoutSeconds,
    })
    record(`Atoll, ${runtime}: fork x${count}`, performance.now() - began)
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
