/** A command prints 200 MB, through envd, edge and client. The baseline is a plain TCP copy out of the sandbox. */
import { once } from 'node:events'
import { createSandboxClient } from '@atoll/client/sandbox'
import type { SandboxOptions } from '@atoll/client/sandbox'
import { envdHeaders } from '@atoll/system-tests/http-cloud'
import { frame, open } from '@atoll/system-tests/wire'
import { Sandbox } from 'e2b'
import type { RuntimeName } from '../baselines.ts'
import { serveCannedOutput } from '../canned-output.ts'
import { startTcpCopy } from '../tcp-copy.ts'
import { interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import type { BenchSandbox } from '../test-bed.ts'

const bytes = 200_000_000
/** Writes chunks as large as those of the plain copy. With small chunks `dd` would be the bottleneck. */
const command = `dd if=/dev/zero bs=256K iflag=count_bytes count=${bytes} status=none`

export const processOutput: Scenario = {
  name: 'process-output',
  rounds: 2,
  async measure(context) {
    const { testBed, rounds } = context
    await using opened = new AsyncDisposableStack()
    const measure = (name: string, work: () => Promise<unknown>) => async (samples: Samples) =>
      samples.record(name, await timed(work))
    const measureIn = (sandbox: BenchSandbox) => (name: string, work: () => Promise<unknown>) => {
      const measured = measure(name, work)
      return async (samples: Samples) => {
        await keepBusy(sandbox)
        await measured(samples)
      }
    }
    const canned = opened.use(await serveCannedOutput(bytes))
    const measurements = [
      measure(names.cannedClient, () => byOurClient({ url: canned.url, sandboxId: 'canned' })),
    ]
    for (const runtime of runtimes) {
      const sandbox = opened.use(await testBed.sandbox(runtime))
      const { cloud, handle } = sandbox
      const { url, connection } = cloud.installation
      const { generate } = await startTcpCopy(sandbox.sdk)
      const address = { url, sandboxId: handle.sandboxID, accessToken: handle.envdAccessToken }
      const inside = measureIn(sandbox)
      measurements.push(
        inside(names.plain(runtime), () => generate(bytes)),
        inside(names.pipe(runtime), () => sandbox.sdk.commands.run(`${command} | cat >/dev/null`)),
        inside(names.undecoded(runtime), () => readWithoutDecoding(sandbox)),
        inside(names.client(runtime), () => byOurClient(address)),
        inside(names.sdk(runtime), () => bySdk(sandbox.sdk)),
      )
      if (runtime !== runtimes[0]) continue
      const fed = await Sandbox.connect(handle.sandboxID, { ...connection, sandboxUrl: canned.url })
      measurements.push(measure(names.cannedSdk, () => bySdk(fed)))
    }
    const { row } = await interleave(context, measurements, { warmUp: false })
    return [
      {
        scenario: 'process-output',
        description: `${bytes / 1e6} MB of standard output, ${rounds} rounds, interleaved`,
        rows: [
          row(names.cannedClient),
          row(names.cannedSdk),
          ...runtimes.flatMap((runtime) => [
            row(names.plain(runtime)),
            row(names.pipe(runtime)),
            row(names.undecoded(runtime), names.plain(runtime)),
            row(names.client(runtime), names.plain(runtime)),
            row(names.sdk(runtime), names.plain(runtime)),
          ]),
        ],
      },
    ]
  },
}

const names = {
  cannedClient: 'our client by itself',
  cannedSdk: 'e2b SDK by itself',
  plain: (runtime: RuntimeName) => `plain TCP, ${runtime}`,
  pipe: (runtime: RuntimeName) => `a pipe inside, ${runtime}`,
  undecoded: (runtime: RuntimeName) => `not decoded, ${runtime}`,
  client: (runtime: RuntimeName) => `our client (binary), ${runtime}`,
  sdk: (runtime: RuntimeName) => `e2b SDK (JSON, base64), ${runtime}`,
} as const

/**
 * Keeps the sandbox busy until the node ends its idle throttling. The first measurement in a throttled sandbox takes up
 * to twice as long.
 */
async function keepBusy({ sdk }: BenchSandbox): Promise<void> {
  await sdk.commands.run("timeout 3 bash -c 'while :; do :; done' || true")
}

/** Reads the reply with node:http and discards it. */
async function readWithoutDecoding({ cloud, handle }: BenchSandbox): Promise<void> {
  const process = { cmd: '/bin/bash', args: ['-l', '-c', command] }
  const answer = await open(cloud.installation.url, {
    method: 'POST',
    path: '/process.Process/Start',
    headers: { ...envdHeaders(handle), 'Content-Type': 'application/connect+json' },
    body: frame(JSON.stringify({ process, stdin: false })),
  })
  let received = 0
  answer.on('data', (chunk: Buffer) => (received += chunk.length))
  await once(answer, 'end')
  if (received < (bytes / 3) * 4)
    throw new Error(`Expected ${bytes} bytes in base64, but only ${received} arrived`)
}

async function byOurClient(address: SandboxOptions): Promise<void> {
  const client = createSandboxClient({ ...address, reusesMemory: true })
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
  if (received !== bytes) throw new Error(`Expected ${bytes} bytes, but ${received} arrived`)
}
