/**
 * From the wish for a sandbox to the first byte that a command in it printed, against the runtime alone running the
 * same command on the same files. Each round measures every row once, beginning with another one each time.
 */
import { envdHeaders, openProcess, outputOf } from '@atoll/system-tests/cloud-by-hand'
import type { CloudByHand } from '@atoll/system-tests/cloud-by-hand'
import type { RuntimeName } from '../baselines.ts'
import { interleave } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const command = ['/bin/echo', 'hello'] as const

export const firstByte: Scenario = {
  name: 'first-byte',
  rounds: 10,
  async measure(context) {
    const { stage, rounds } = context
    const [gvisor, runc] = [await stage.cloud('gvisor'), await stage.cloud('runc')]
    const baselines = await stage.baselines()
    const raw = (runtime: RuntimeName, name: string) => async (samples: Samples) =>
      samples.note(name, await baselines.firstByte(runtime, command))
    const atoll = (cloud: CloudByHand, name: string) => async (samples: Samples) => {
      const { createdMs, printedMs } = await timeSandbox(cloud)
      samples.note(name, printedMs)
      samples.note(createPart(name), createdMs)
      samples.note(commandPart(name), printedMs - createdMs)
    }
    const { row } = await interleave(context, [
      raw('gvisor', names.rawGvisor),
      atoll(gvisor, names.gvisor),
      raw('runc', names.rawRunc),
      atoll(runc, names.runc),
    ])
    const parts = (name: string) => [row(createPart(name)), row(commandPart(name))]
    const description = `From POST /v2/sandboxes to the first byte of \`${command.join(' ')}\`, ${rounds} rounds, interleaved`
    const rows = [
      row(names.rawGvisor),
      row(names.gvisor, names.rawGvisor),
      ...parts(names.gvisor),
      row(names.rawRunc),
      row(names.runc, names.rawRunc),
      ...parts(names.runc),
    ]
    return [{ scenario: 'first-byte', description, rows }]
  },
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
