/** Time and memory of a 1 GB upload and download by /files. The baseline is a plain TCP copy of the same file. */
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { envdHeaders } from '@atoll/system-tests/http-cloud'
import type { RuntimeName } from '../baselines.ts'
import { startTcpCopy } from '../tcp-copy.ts'
import { collectSamples, interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import { groupOf } from '../test-bed.ts'
import type { BenchSandbox } from '../test-bed.ts'
import { groupMemoryMb, residentMb, watchPeak } from '../usage.ts'
import { lowOverheadClient, nodeHttpClient } from './file-transfer-clients.ts'

const bytes = 1_000_000_000
const sandboxPath = '/home/user/one-gigabyte'

export const fileTransfer: Scenario = {
  name: 'file-transfer',
  rounds: 1,
  async measure(context) {
    const { testBed, rounds } = context
    await using opened = new AsyncDisposableStack()
    const dir = await mkdtemp('/var/tmp/atoll-bench-')
    opened.defer(() => rm(dir, { recursive: true, force: true }))
    const source = join(dir, 'source')
    await writeFile(source, '')
    await truncate(source, bytes)
    const memory = collectSamples()
    const measurements = []
    for (const runtime of runtimes) {
      const sandbox = opened.use(await testBed.sandbox(runtime))
      measurements.push(...(await measureTransfers({ runtime, sandbox, source, memory })))
    }
    const { row } = await interleave(context, measurements, { warmUp: false })
    const rows = (direction: Direction, runtime: RuntimeName) => [
      row(plainRow(direction, runtime)),
      row(atollRow(direction, runtime), plainRow(direction, runtime)),
      row(nodeHttpRow(direction, runtime), plainRow(direction, runtime)),
    ]
    const size = `${bytes / 1e9} GB`
    return [
      {
        scenario: 'file-transfer',
        description: `${size} by POST and GET /files, ${rounds} rounds, interleaved`,
        rows: runtimes.flatMap((runtime) => [...rows('up', runtime), ...rows('down', runtime)]),
      },
      {
        scenario: 'file-transfer-memory',
        description: `Memory before and while ${size} passes, each direction: the largest of many readings`,
        unit: 'MiB',
        rows: runtimes.flatMap((runtime) =>
          parts.flatMap((part) => [
            memory.row(`${part}, ${runtime}: before`),
            memory.row(`${part}, ${runtime}: peak`, `${part}, ${runtime}: before`),
          ]),
        ),
      },
    ]
  },
}

type Direction = 'up' | 'down'
const parts = ['server (api, edge, node)', 'sandbox with envd'] as const

const plainRow = (direction: Direction, runtime: RuntimeName) =>
  `plain TCP ${direction}, ${runtime}`
const atollRow = (direction: Direction, runtime: RuntimeName) => `/files ${direction}, ${runtime}`
const nodeHttpRow = (direction: Direction, runtime: RuntimeName) =>
  `/files ${direction} by node:http, ${runtime}`

/** Returns the uploads and downloads of one runtime by each client. */
async function measureTransfers(setup: {
  readonly runtime: RuntimeName
  readonly sandbox: BenchSandbox
  readonly source: string
  readonly memory: Samples
}): Promise<((samples: Samples) => Promise<void>)[]> {
  const { runtime, sandbox, source, memory } = setup
  const plain = await startTcpCopy(sandbox.sdk)
  // A round may start with a download.
  const fill = `dd if=/dev/zero of=${sandboxPath} bs=1M iflag=count_bytes count=${bytes} status=none`
  await sandbox.sdk.commands.run(fill, { timeoutMs: 0 })
  const measure = (name: string, work: () => Promise<unknown>) => async (samples: Samples) =>
    samples.record(name, await timed(work))
  const transfer = {
    url: sandbox.cloud.installation.url,
    path: `/files?path=${encodeURIComponent(sandboxPath)}`,
    headers: envdHeaders(sandbox.handle),
    bytes,
  }
  const watched = (work: () => Promise<unknown>) => () =>
    watchMemory(sandbox, memory, runtime, work)
  return [
    measure(plainRow('up', runtime), () => plain.upload(source, sandboxPath, bytes)),
    measure(plainRow('down', runtime), () => plain.download(sandboxPath, bytes)),
    measure(
      atollRow('up', runtime),
      watched(() => lowOverheadClient.upload(transfer, source)),
    ),
    measure(
      atollRow('down', runtime),
      watched(() => lowOverheadClient.download(transfer)),
    ),
    measure(nodeHttpRow('up', runtime), () => nodeHttpClient.upload(transfer, source)),
    measure(nodeHttpRow('down', runtime), () => nodeHttpClient.download(transfer)),
  ]
}

async function watchMemory(
  { cloud, handle }: BenchSandbox,
  memory: Samples,
  runtime: RuntimeName,
  work: () => Promise<unknown>,
): Promise<void> {
  const group = await groupOf(cloud, handle)
  const [server, sandbox] = [() => residentMb(cloud.installation.pid()), () => groupMemoryMb(group)]
  const watches = [server, sandbox].map(async (read, at) => {
    memory.record(`${parts[at]}, ${runtime}: before`, await read())
    return watchPeak(read)
  })
  const peaks = await Promise.all(watches)
  try {
    await work()
  } finally {
    for (const [at, peak] of peaks.entries()) {
      memory.record(`${parts[at]}, ${runtime}: peak`, await peak.stop())
    }
  }
}
