/** 1 GB to a file of the sandbox and back by /files, against a plain TCP copy to and from such a file; and the memory. */
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { envdHeaders } from '@atoll/system-tests/cloud-by-hand'
import type { RuntimeName } from '../baselines.ts'
import { startPlainCopy } from '../plain-copy.ts'
import { collectSamples, interleave, runtimes, timed } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import { groupOf } from '../stage.ts'
import type { StagedSandbox } from '../stage.ts'
import { groupMemoryMb, residentMb, watchPeak } from '../usage.ts'
import { leanClient, nodeHttpClient } from './file-transfer-clients.ts'

const bytes = 1_000_000_000
const there = '/home/user/one-gigabyte'

export const fileTransfer: Scenario = {
  name: 'file-transfer',
  rounds: 1,
  async measure(context) {
    const { stage, rounds } = context
    await using opened = new AsyncDisposableStack()
    const dir = await mkdtemp('/var/tmp/atoll-bench-')
    opened.defer(() => rm(dir, { recursive: true, force: true }))
    const source = join(dir, 'source')
    await writeFile(source, '')
    await truncate(source, bytes)
    const memory = collectSamples()
    const measurements = []
    for (const runtime of runtimes) {
      const sandbox = opened.use(await stage.sandbox(runtime))
      const plain = await startPlainCopy(sandbox.sdk)
      // A round may begin with a download.
      const fill = `dd if=/dev/zero of=${there} bs=1M iflag=count_bytes count=${bytes} status=none`
      await sandbox.sdk.commands.run(fill, { timeoutMs: 0 })
      const measure = (name: string, work: () => Promise<unknown>) => async (samples: Samples) =>
        samples.note(name, await timed(work))
      const transfer = {
        url: sandbox.cloud.installation.url,
        path: `/files?path=${encodeURIComponent(there)}`,
        headers: envdHeaders(sandbox.hand),
        bytes,
      }
      const watched = (work: () => Promise<unknown>) => () =>
        watchMemory(sandbox, memory, runtime, work)
      measurements.push(
        measure(plainRow('up', runtime), () => plain.upload(source, there, bytes)),
        measure(plainRow('down', runtime), () => plain.download(there, bytes)),
        measure(
          atollRow('up', runtime),
          watched(() => leanClient.upload(transfer, source)),
        ),
        measure(
          atollRow('down', runtime),
          watched(() => leanClient.download(transfer)),
        ),
        measure(nodeHttpRow('up', runtime), () => nodeHttpClient.upload(transfer, source)),
        measure(nodeHttpRow('down', runtime), () => nodeHttpClient.download(transfer)),
      )
    }
    const { row } = await interleave(context, measurements, { warmUp: false })
    const rows = (way: Way, runtime: RuntimeName) => [
      row(plainRow(way, runtime)),
      row(atollRow(way, runtime), plainRow(way, runtime)),
      row(nodeHttpRow(way, runtime), plainRow(way, runtime)),
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
        description: `Memory before and while ${size} passes, each way: the largest of many looks`,
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

type Way = 'up' | 'down'
const parts = ['server (api, edge, node)', 'sandbox with envd'] as const

const plainRow = (way: Way, runtime: RuntimeName) => `plain TCP ${way}, ${runtime}`
const atollRow = (way: Way, runtime: RuntimeName) => `/files ${way}, ${runtime}`
const nodeHttpRow = (way: Way, runtime: RuntimeName) => `/files ${way} by node:http, ${runtime}`

async function watchMemory(
  { cloud, hand }: StagedSandbox,
  memory: Samples,
  runtime: RuntimeName,
  work: () => Promise<unknown>,
): Promise<void> {
  const group = await groupOf(cloud, hand)
  const [server, sandbox] = [() => residentMb(cloud.installation.pid()), () => groupMemoryMb(group)]
  const looks = [server, sandbox].map(async (look, at) => {
    memory.note(`${parts[at]}, ${runtime}: before`, await look())
    return watchPeak(look)
  })
  const peaks = await Promise.all(looks)
  try {
    await work()
  } finally {
    for (const [at, peak] of peaks.entries()) {
      memory.note(`${parts[at]}, ${runtime}: peak`, await peak.stop())
    }
  }
}
