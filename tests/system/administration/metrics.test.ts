/** Metrics against reality: what runs and what it uses, as the published SDK, its command line and plain HTTP show it. */
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

const patient = { intervalMs: 200 }
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

  test('a busy process, a large file and taken memory show in the figures of their sandbox alone', async () => {
    const newest = () => waitFor('a sample', async () => (await busy.getMetrics()).at(-1), patient)
    const rested = await newest()
    await busy.commands.run('head -c 104857600 /dev/urandom > /home/user/large && sync')
    const spin =
      'import time; taken = bytearray(100 << 20); end = time.time() + 300\nwhile time.time() < end: pass'
    const process = await busy.commands.run(`python3 -c '${spin}'`, {
      background: true,
      timeoutMs: 0,
    })
    const during = await waitFor(
      'the use to show',
      async () => {
        const sample = await newest()
        return (
          sample.cpuUsedPct > busyPct &&
          sample.diskUsed > rested.diskUsed + 95 * mebibyte &&
          sample.memUsed > rested.memUsed + 95 * mebibyte &&
          sample
        )
      },
      patient,
    )
    assert.ok(during.diskUsed < rested.diskUsed + 130 * mebibyte, `${during.diskUsed} bytes`)
    assert.deepEqual([during.cpuCount, during.memTotal], [1, 512 * mebibyte])
    assert.ok(during.diskTotal > 400 * mebibyte && during.diskTotal <= 512 * mebibyte)

    const ids = [busy.sandboxId, idle.sandboxId]
    // The idle one may still have been starting.
    const sandboxes = await waitFor(
      'one to be busy and the other not',
      async () => {
        const path = `/sandboxes/metrics?sandbox_ids=${ids.join()},iunknown`
        const { sandboxes: shown } = Object(await get(path))
        const [busyNow, idleNow] = ids.map((id) => shown[id]?.cpuUsedPct)
        return busyNow > busyPct && idleNow < busyPct && shown
      },
      patient,
    )
    await process.kill()
    assert.deepEqual(Object.keys(sandboxes).toSorted(), ids.toSorted())
    assert.ok(sandboxes[idle.sandboxId].diskUsed < 50 * mebibyte)

    await waitFor('the CPU to rest', async () => (await newest()).cpuUsedPct < busyPct, patient)
    await busy.commands.run('rm /home/user/large && sync')
    await waitFor(
      'the disk to shrink',
      async () => (await newest()).diskUsed < rested.diskUsed + 10 * mebibyte,
      patient,
    )
  })

  test('the team sees 5 more start, run, and 3 of them end', async () => {
    const most = Math.max(...(await teamPoints()).map((point) => point.concurrentSandboxes))
    assert.equal(most, 2)
    const started = sum(await teamPoints())
    const options = { ...installation.connection, timeoutMs: 600_000 }
    const more = await Promise.all([1, 2, 3, 4, 5].map(() => Sandbox.create(options)))
    const newest = async () => (await teamPoints()).at(-1)?.concurrentSandboxes
    await waitFor('7 at once', async () => (await newest()) === 7, patient)
    await Promise.all(more.slice(0, 3).map((sandbox) => sandbox.kill()))
    await waitFor('4 at once', async () => (await newest()) === 4, patient)
    // Rates are per second, of samples that are 5 seconds long.
    assert.equal(Math.round((sum(await teamPoints()) - started) * 5), 5)
    const { value } = Object(
      await get(`/teams/${installation.teamId}/metrics/max?metric=concurrent_sandboxes`),
    )
    assert.equal(value, 7)
    await Promise.all(more.slice(3).map((sandbox) => sandbox.kill()))
    assert.ok((await Sandbox.getMetrics(more[4]?.sandboxId ?? '', options)).length > 0)
  })

  test('starts stay counted when the server is killed and started again', async () => {
    const options = { ...installation.connection, timeoutMs: 600_000 }
    const started = sum(await teamPoints())
    await Sandbox.create(options)
    await installation.crash()
    await installation.start()
    await waitFor(
      'the start to be counted',
      async () => Math.round((sum(await teamPoints()) - started) * 5) === 1,
      patient,
    )
  })

  test('the command line shows the metrics', async () => {
    const home = await mkdtemp(join(tmpdir(), 'e2b-home-'))
    const env = { ...installation.env, HOME: home }
    const program = fileURLToPath(import.meta.resolve('@e2b/cli/dist/index.js'))
    const shown = await tryRun(process.execPath, [program, 'sandbox', 'metrics', busy.sandboxId], {
      env,
    })
    await rm(home, { recursive: true })
    assert.equal(shown.code, 0, shown.stderr)
    assert.match(shown.stdout, /CPU.*% \/ +1 Core.*Memory.*\/ *512.*Disk/s)
  })
})

function sum(points: readonly { readonly sandboxStartRate: number }[]): number {
  return points.reduce((total, point) => total + point.sandboxStartRate, 0)
}
