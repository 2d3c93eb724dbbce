/**
 * Memory and disk of sandboxes that do nothing: running and idle, ready in the pool, and paused. A paused sandbox has no
 * process and no control group; its disk use shrinks when the node compresses the saved memory.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'
import { cellOf, namesOf, processesOfCell } from '@atoll/system-tests/host-state'
import type { RuntimeName } from '../baselines.ts'
import { killSandbox } from '../first-output.ts'
import { readyCells, waitForFullPool } from '../pool.ts'
import { collectSamples, runtimes } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import { groupMemoryMb } from '../usage.ts'

/** The node compresses saved memory that was not used for two minutes. */
const packTimeoutMs = 600_000

export const heldSandbox: Scenario = {
  name: 'held-sandbox',
  rounds: 3,
  async measure({ testBed, rounds, progress }) {
    const [memory, disk] = [collectSamples(), collectSamples()]
    for (const runtime of runtimes) {
      progress(`idle, ready and paused, ${runtime}`)
      const cloud = await testBed.cloud(runtime, 'pooled')
      await waitForFullPool(cloud)
      await recordReady(cloud, memory, runtime)
      const made = await Promise.all(Array.from({ length: rounds }, () => cloud.createSandbox()))
      for (const sandbox of made) await recordIdle(cloud, sandbox, memory, runtime)
      for (const sandbox of made) await recordPaused(cloud, sandbox, { memory, disk, runtime })
      if (runtime === 'gvisor') await recordPacked(cloud, made, disk)
      for (const { sandboxID } of made) await killSandbox(cloud, sandboxID)
    }
    return [
      {
        scenario: 'held-sandbox-memory',
        description: `Memory of a sandbox that does nothing, ${rounds} of each kind`,
        unit: 'MiB',
        rows: runtimes.flatMap((runtime) => [
          memory.row(idle(runtime)),
          memory.row(ready(runtime), idle(runtime)),
          memory.row(paused(runtime), idle(runtime)),
        ]),
      },
      {
        scenario: 'held-sandbox-disk',
        description: `Disk of a paused sandbox, ${rounds} of each kind`,
        unit: 'MiB',
        rows: [
          disk.row(paused('gvisor')),
          disk.row(packed, paused('gvisor')),
          disk.row(paused('runc')),
        ],
      },
    ]
  },
}

const idle = (runtime: RuntimeName) => `running, idle, ${runtime}`
const ready = (runtime: RuntimeName) => `ready in the pool, ${runtime}`
const paused = (runtime: RuntimeName) => `paused, ${runtime}`
const packed = 'paused and packed, gvisor'

async function recordReady(cloud: HttpCloud, memory: Samples, runtime: RuntimeName): Promise<void> {
  const { cgroup } = await namesOf(cloud.installation.dataDir)
  for (const cellId of await readyCells(cloud)) {
    memory.record(ready(runtime), await groupMemoryMb(`/${cgroup}/${cellId}`))
  }
}

async function recordIdle(
  cloud: HttpCloud,
  { sandboxID }: HttpSandbox,
  memory: Samples,
  runtime: RuntimeName,
): Promise<void> {
  const names = await namesOf(cloud.installation.dataDir)
  const cellId = await cellOf(names, sandboxID)
  memory.record(idle(runtime), await groupMemoryMb(`/${names.cgroup}/${cellId}`))
}

async function recordPaused(
  cloud: HttpCloud,
  { sandboxID }: HttpSandbox,
  into: { readonly memory: Samples; readonly disk: Samples; readonly runtime: RuntimeName },
): Promise<void> {
  const { memory, disk, runtime } = into
  const body = { memory: runtime === 'gvisor' }
  const { status, text } = await cloud.platform('POST', `/sandboxes/${sandboxID}/pause`, body)
  if (status !== 204) throw new Error(`Cannot pause sandbox ${sandboxID}: ${status} ${text}`)
  const names = await namesOf(cloud.installation.dataDir)
  const cellId = await cellOf(names, sandboxID)
  // The processes end after the answer to the pause.
  await waitFor(
    `the processes of paused sandbox ${sandboxID} to end`,
    async () => (await processesOfCell(names, cellId)).length === 0,
    { timeoutMs: 60_000 },
  )
  // The control group is gone, so no memory is charged.
  const group = `/${names.cgroup}/${cellId}`
  memory.record(paused(runtime), await groupMemoryMb(group).catch(() => 0))
  disk.record(paused(runtime), await folderMb(join(names.dataDir, 'cells', cellId)))
}

async function recordPacked(
  cloud: HttpCloud,
  sandboxes: readonly HttpSandbox[],
  disk: Samples,
): Promise<void> {
  const names = await namesOf(cloud.installation.dataDir)
  for (const { sandboxID } of sandboxes) {
    const dir = join(names.dataDir, 'cells', await cellOf(names, sandboxID))
    await waitFor(
      'memory to be packed',
      async () => (await readdir(join(dir, 'memory'))).every(isPackedOrSmall),
      { timeoutMs: packTimeoutMs, intervalMs: 1000 },
    )
    disk.record(packed, await folderMb(dir))
  }
}

/** Only `pages.img` is large enough to be compressed. */
function isPackedOrSmall(name: string): boolean {
  return name !== 'pages.img' && !name.endsWith('.next')
}

/** Returns the allocated size of a folder; holes do not count. */
async function folderMb(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const stats = await Promise.all(files.map((file) => stat(join(file.parentPath, file.name))))
  return stats.reduce((sum, { blocks }) => sum + blocks * 512, 0) / 1024 / 1024
}
