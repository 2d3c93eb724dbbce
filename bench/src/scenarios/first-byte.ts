/**
 * From the wish for a sandbox to the first byte that a command in it printed, against the runtime alone running the
 * same command on the same files. Each round measures every row once, beginning with another one each time.
 */
import { envdHeaders, openProcess, outputOf, startCloud } from '@atoll/system-tests/cloud-by-hand'
import type { CloudByHand } from '@atoll/system-tests/cloud-by-hand'
import { prepareBaselines } from '../baselines.ts'
import type { RuntimeName } from '../baselines.ts'
import { rotate, summarize } from '../measure.ts'
import type { Row, ScenarioReport } from '../report.ts'

const command = ['/bin/echo', 'hello'] as const

export async function measureFirstByte(options: {
  readonly rounds: number
  readonly signal: AbortSignal
  readonly progress: (text: string) => void
}): Promise<ScenarioReport> {
  const { rounds, signal, progress } = options
  progress('starting two installations')
  await using gvisor = await startCloud({ ATOLL_RUNTIME: 'gvisor' })
  signal.throwIfAborted()
  await using runc = await startCloud({ ATOLL_RUNTIME: 'runc' })
  signal.throwIfAborted()
  await using baselines = await prepareBaselines()

  const samples = new Map<string, number[]>()
  const note = (name: string, value: number) => {
    samples.set(name, [...(samples.get(name) ?? []), value])
  }
  const raw = async (runtime: RuntimeName, name: string) =>
    note(name, await baselines.firstByte(runtime, command))
  const atoll = async (cloud: CloudByHand, name: string) => {
    const { createdMs, printedMs } = await timeSandbox(cloud)
    note(name, printedMs)
    note(createPart(name), createdMs)
    note(commandPart(name), printedMs - createdMs)
  }
  const measurements = [
    () => raw('gvisor', names.rawGvisor),
    () => atoll(gvisor, names.gvisor),
    () => raw('runc', names.rawRunc),
    () => atoll(runc, names.runc),
  ]
  // The first round fills caches that a machine in use has filled, and does not count.
  for (let round = 0; round <= rounds; round += 1) {
    progress(round === 0 ? 'warming up' : `round ${round} of ${rounds}`)
    if (round === 1) samples.clear()
    for (const measurement of rotate(measurements, round)) {
      signal.throwIfAborted()
      await measurement()
    }
  }

  const row = (name: string, baseline?: string): Row => ({
    name,
    summary: summarize(samples.get(name) ?? []),
    ...(baseline !== undefined && { baseline }),
  })
  const parts = (name: string) => [row(createPart(name)), row(commandPart(name))]
  return {
    scenario: 'first-byte',
    description: `From POST /v2/sandboxes to the first byte of \`${command.join(' ')}\`, ${rounds} rounds, interleaved`,
    rows: [
      row(names.rawGvisor),
      row(names.gvisor, names.rawGvisor),
      ...parts(names.gvisor),
      row(names.rawRunc),
      row(names.runc, names.rawRunc),
      ...parts(names.runc),
    ],
  }
}

const names = {
  rawGvisor: 'runsc run',
  gvisor: 'Atoll, gvisor',
  rawRunc: 'runc run',
  runc: 'Atoll, runc',
} as const

const createPart = (name: string) => `${name}: create`
const commandPart = (name: string) => `${name}: command`

async function timeSandbox(
  cloud: CloudByHand,
): Promise<{ readonly createdMs: number; readonly printedMs: number }> {
  const { url } = cloud.installation
  const [cmd, ...args] = command
  const began = performance.now()
  const sandbox = await cloud.createSandbox()
  const createdMs = performance.now() - began
  const process = await openProcess(url, envdHeaders(sandbox), {
    process: { cmd, args },
    stdin: false,
  })
  const printed = await process.next()
  const printedMs = performance.now() - began
  if (!printed || outputOf([printed]) === '') throw new Error('the command printed nothing')
  await process.rest()
  await cloud.platform('DELETE', `/sandboxes/${sandbox.sandboxID}`)
  return { createdMs, printedMs }
}
