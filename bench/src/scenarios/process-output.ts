/** 200 MB that a command prints, through envd, edge and client, against a plain TCP copy of as much out of the sandbox. */
import { createSandboxClient } from '@atoll/client/sandbox'
import type { Sandbox } from 'e2b'
import type { RuntimeName } from '../baselines.ts'
import { startPlainCopy } from '../plain-copy.ts'
import { interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import type { StagedSandbox } from '../stage.ts'

const bytes = 200_000_000
/** In pieces as large as a pipe: with small ones, one would measure the program that writes them. */
const command = `dd if=/dev/zero bs=64K iflag=count_bytes count=${bytes} status=none`

export const processOutput: Scenario = {
  name: 'process-output',
  rounds: 2,
  async measure(context) {
    const { stage, rounds } = context
    await using opened = new AsyncDisposableStack()
    const measurements = []
    for (const runtime of runtimes) {
      const sandbox = opened.use(await stage.sandbox(runtime))
      const { generate } = await startPlainCopy(sandbox.sdk)
      const measure = (name: string, work: () => Promise<unknown>) => async (samples: Samples) =>
        samples.note(name, await timed(work))
      measurements.push(
        measure(names.plain(runtime), () => generate(bytes)),
        measure(names.pipe(runtime), () => sandbox.sdk.commands.run(`${command} | cat >/dev/null`)),
        measure(names.client(runtime), () => byOurClient(sandbox)),
        measure(names.sdk(runtime), () => bySdk(sandbox.sdk)),
      )
    }
    const { row } = await interleave(context, measurements, { warmUp: false })
    return [
      {
        scenario: 'process-output',
        description: `${bytes / 1e6} MB of standard output, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [
          row(names.plain(runtime)),
          row(names.pipe(runtime)),
          row(names.client(runtime), names.plain(runtime)),
          row(names.sdk(runtime), names.plain(runtime)),
        ]),
      },
    ]
  },
}

const names = {
  plain: (runtime: RuntimeName) => `plain TCP, ${runtime}`,
  pipe: (runtime: RuntimeName) => `a pipe inside, ${runtime}`,
  client: (runtime: RuntimeName) => `our client (binary), ${runtime}`,
  sdk: (runtime: RuntimeName) => `e2b SDK (JSON, base64), ${runtime}`,
} as const

async function byOurClient({ cloud, hand }: StagedSandbox): Promise<void> {
  const client = createSandboxClient({
    url: cloud.installation.url,
    sandboxId: hand.sandboxID,
    accessToken: hand.envdAccessToken,
  })
  let received = 0
  const stream = client.start({
    process: { cmd: '/bin/bash', args: ['-l', '-c', command] },
    stdin: false,
  })
  for await (const { event } of stream) {
    if (event?.event.case !== 'data') continue
    const { output } = event.event.value
    if (output.case === 'stdout') received += output.value.length
  }
  check(received)
}

async function bySdk(sandbox: Sandbox): Promise<void> {
  const { stdout } = await sandbox.commands.run(command, { timeoutMs: 0 })
  check(stdout.length)
}

function check(received: number): void {
  if (received !== bytes) throw new Error(`${received} bytes arrived instead of ${bytes}`)
}
