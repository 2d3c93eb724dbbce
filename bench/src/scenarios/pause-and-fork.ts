/**
 * Pause, resume and fork, against `runsc checkpoint` and `runsc restore` of the same sandbox by hand. Under runc files
 * alone are kept, so that a resume or a copy boots: there the baseline is `runc run true`.
 */
import type { CloudByHand, HandSandbox } from '@atoll/system-tests/cloud-by-hand'
import type { RuntimeName } from '../baselines.ts'
import { end, firstOutput } from '../first-output.ts'
import { openRawCopies } from '../raw-copies.ts'
import { interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

type Measurement = (samples: Samples) => Promise<void>

const counts = [1, 10] as const

export const pauseAndFork: Scenario = {
  name: 'pause-and-fork',
  rounds: 5,
  async measure(context) {
    const { stage, rounds } = context
    const baselines = await stage.baselines()
    await using opened = new AsyncDisposableStack()
    const measurements: Measurement[] = [
      async ({ note }) => {
        note(rawRun, await timed(() => baselines.run('runc', ['/bin/true'])))
      },
    ]
    for (const runtime of runtimes) {
      const { cloud, hand: source } = opened.use(await stage.sandbox(runtime))
      const { hand: sleeper } = opened.use(await stage.sandbox(runtime))
      measurements.push(pauseAndResume(runtime, cloud, sleeper))
      for (const count of counts) measurements.push(fork(runtime, cloud, source, count))
      if (runtime === 'gvisor') measurements.push(await copyByHand(cloud, source))
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

async function copyByHand(cloud: CloudByHand, source: HandSandbox): Promise<Measurement> {
  const copies = await openRawCopies(cloud, source)
  return async ({ note }) => {
    const checkpointMs = await copies.checkpoint()
    note(rawCheckpoint, checkpointMs)
    for (const count of counts) {
      const restoreMs = await copies.restore(count)
      note(rawRestore(count), restoreMs)
      note(rawBoth(count), checkpointMs + restoreMs)
    }
  }
}

function pauseAndResume(
  runtime: RuntimeName,
  cloud: CloudByHand,
  sleeper: HandSandbox,
): Measurement {
  const { sandboxID } = sleeper
  const memory = runtime === 'gvisor'
  return async ({ note }) => {
    const pauseMs = await timed(() => post(cloud, `/sandboxes/${sandboxID}/pause`, { memory }))
    note(`Atoll, ${runtime}: pause`, pauseMs)
    const began = performance.now()
    await post(cloud, `/sandboxes/${sandboxID}/connect`, { timeout: lifeSeconds })
    note(`Atoll, ${runtime}: resume`, performance.now() - began)
    const rest = await firstOutput(cloud, sleeper)
    note(`Atoll, ${runtime}: resume until first output`, performance.now() - began)
    await rest()
  }
}

function fork(
  runtime: RuntimeName,
  cloud: CloudByHand,
  { sandboxID }: HandSandbox,
  count: number,
): Measurement {
  return async ({ note }) => {
    const began = performance.now()
    const text = await post(cloud, `/sandboxes/${sandboxID}/fork`, { count, timeout: lifeSeconds })
    note(`Atoll, ${runtime}: fork x${count}`, performance.now() - began)
    const copies: { readonly sandbox?: HandSandbox }[] = JSON.parse(text)
    const made = copies.flatMap(({ sandbox }) => sandbox ?? [])
    if (made.length !== count) throw new Error(`${made.length} of ${count} copies run: ${text}`)
    await Promise.all(made.map((copy) => end(cloud, copy.sandboxID)))
  }
}

async function post(cloud: CloudByHand, path: string, body: object): Promise<string> {
  const { status, text } = await cloud.platform('POST', path, body)
  if (status < 200 || status > 299) throw new Error(`POST ${path}: ${status} ${text}`)
  return text
}

const lifeSeconds = 3600
