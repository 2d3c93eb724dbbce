/** Compares metrics with the real load: in the published SDK, in its command line and over plain HTTP. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 200 }
const mebibyte = 1024 * 1024
/** Percent of a core. An idle sandbox takes 3 %; a busy one gets more than this even on a busy machine. */
const busyPct = 8

suite('metrics of a real installation', () => {
  let installation: Installation
  let busy: Sandbox
  let idle: Sandbox

  before(async () => {
    installation = await install({
      ATOLL_RUNTIME: 'gvisor',
      ATOLL_BASE_CPU_COUNT: '1',
      ATOLL_BASE_MEMORY_MB: '512',
      ATOLL_BASE_DISK_SIZE_MB: '512',
    })
    const options = { ...installation.connection, timeoutMs: 600_000 }
    busy = await Sandbox.create(options)
    idle = await Sandbox.create(options)
  })
  after(() => installation[Symbol.asyncDispose]())

  async function get(path: string): Promise<unknown> {
    const reply = await fetch(`${installation.url}${path}`, {
      headers: { 'x-api-key': installation.apiKey },
    })
    assert.equal(reply.status, 200)
    return reply.json()
  }

  async function teamPoints(): Promise<
    { concurrentSandboxes: number; sandboxStartRate: number }[]
  > {
    // A short range comes in steps of 5 seconds.
    const start = Math.floor(Date.now() / 1000) - 600
    return Object(await get(`/teams/${installation.teamId}/metrics?start=${start}`))
  }

  test('a busy process, a large file and allocated memory appear only in the metrics of their sandbox', async () => {
    const newest = () => waitFor('a sample', async () => (await busy.getMetrics()).at(-1), polling)
    const idleSample = await newest()
    await busy.commands.run('head -c 104857600 /dev/urandom > /home/user/large && sync')
    const spin =
      'import time; taken = bytearray(100 << 20); end = time.time() + 300\nwhile time.time() < end: pass'
    const process = await busy.commands.run(`python3 -c '${spin}'`, {
      background: true,
      timeoutMs: 0,
    })
    const loadSample = await waitFor(
      'the load to appear',
      async () => {
        const sample = await newest()
        return (
          sample.cpuUsedPct > busyPct &&
          sample.diskUsed > idleSample.diskUsed + 95 * mebibyte &&
          sample.memUsed > idleSample.memUsed + 95 * mebibyte &&
          sample
        )
      },
      polling,
    )
    assert.ok(
      loadSample.diskUsed < idleSample.diskUsed + 130 * mebibyte,
      `${loadSample.diskUsed} bytes`,
    )
    assert.deepEqual([loadSample.cpuCount, loadSample.memTotal], [1, 512 * mebibyte])
    assert.ok(loadSample.diskTotal > 400 * mebibyte && loadSample.diskTotal <= 512 * mebibyte)

    const ids = [busy.sandboxId, idle.sandboxId]
    // The idle sandbox may still have been starting.
    const metricsById = await waitFor(
      'one busy and one idle sandbox',
      async () => {
        const path = `/sandboxes/metrics?sandbox_ids=${ids.join()},iunknown`
        const { sandboxes: metrics } = Object(await get(path))
        const [busyNow, idleNow] = ids.map((id) => metrics[id]?.cpuUsedPct)
        return busyNow > busyPct && idleNow < busyPct && metrics
      },
      polling,
    )
    await process.kill()
    assert.deepEqual(Object.keys(metricsById).toSorted(), ids.toSorted())
    assert.ok(metricsById[idle.sandboxId].diskUsed < 50 * mebibyte)

    await waitFor(
      'the CPU to become idle',
      async () => (await newest()).cpuUsedPct < busyPct,
      polling,
    )
    await busy.commands.run('rm /home/user/large && sync')
    await waitFor(
      'the disk to shrink',
      async () => (await newest()).diskUsed < idleSample.diskUsed + 10 * mebibyte,
      polling,
    )
  })

  test('team metrics count 5 more sandboxes, and the end of 3 of them', async () => {
    const maxCount = Math.max(...(await teamPoints()).map((point) => point.concurrentSandboxes))
    assert.equal(maxCount, 2)
    const startsBefore = sum(await teamPoints())
    const options = { ...installation.connection, timeoutMs: 600_000 }
    const sandboxes = await Promise.all([1, 2, 3, 4, 5].map(() => Sandbox.create(options)))
    const newest = async () => (await teamPoints()).at(-1)?.concurrentSandboxes
    await waitFor('7 concurrent sandboxes', async () => (await newest()) === 7, polling)
    await Promise.all(sandboxes.slice(0, 3).map((sandbox) => sandbox.kill()))
    await waitFor('4 concurrent sandboxes', async () => (await newest()) === 4, polling)
    // Rates are per second, of samples that are 5 seconds long.
    assert.equal(Math.round((sum(await teamPoints()) - startsBefore) * 5), 5)
    const { value } = Object(
      await get(`/teams/${installation.teamId}/metrics/max?metric=concurrent_sandboxes`),
    )
    assert.equal(value, 7)
    await Promise.all(sandboxes.slice(3).map((sandbox) => sandbox.kill()))
    assert.ok((await Sandbox.getMetrics(sandboxes[4]?.sandboxId ?? '', options)).length > 0)
  })

  test('starts stay counted when the server is killed and started again', async () => {
    const options = { ...installation.connection, timeoutMs: 600_000 }
    const startsBefore = sum(await teamPoints())
    await Sandbox.create(options)
    await installation.crash()
    await installation.start()
    await waitFor(
      'the start to be counted',
      async () => Math.round((sum(await teamPoints()) - startsBefore) * 5) === 1,
      polling,
    )
  })

  test('the command line shows the metrics', async () => {
    const home = await mkdtemp(join(tmpdir(), 'e2b-home-'))
    const env = { ...installation.env, HOME: home }
    const program = fileURLToPath(import.meta.resolve('@e2b/cli/dist/index.js'))
    const result = await tryRun(process.execPath, [program, 'sandbox', 'metrics', busy.sandboxId], {
      env,
    })
    await rm(home, { recursive: true })
    assert.equal(result.code, 0, result.stderr)
    assert.match(result.stdout, /CPU.*% \/ +1 Core.*Memory.*\/ *512.*Disk/s)
  })
})

function sum(points: readonly { readonly sandboxStartRate: number }[]): number {
  return points.reduce((total, point) => total + point.sandboxStartRate, 0)
}
