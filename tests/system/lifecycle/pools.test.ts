/** Warm pools: cells that are ready before a create request. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { cellOf, namesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { runtimes } from '../shell.ts'

const polling = { intervalMs: 100 }
const adminToken = 'operators-only-token'

for (const runtime of runtimes) {
  suite(`pools on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']
    let names: Names

    before(async () => {
      installation = await install({
        ATOLL_RUNTIME: runtime,
        ATOLL_BASE_MEMORY_MB: '256',
        ATOLL_POOL_MEMORY_MB: '2000',
        ATOLL_ADMIN_TOKEN: adminToken,
      })
      connection = installation.connection
      names = await namesOf(installation.dataDir)
    })
    after(() => installation[Symbol.asyncDispose]())

    test('a create takes a pre-warmed cell, which gets its own name, variables and token', async () => {
      const cells = await waitForFullPool()
      const sandbox = await Sandbox.create({ ...connection, envs: { GIVEN: 'to one' } })
      assert.ok(cells.includes(await cellOf(names, sandbox.sandboxId)))
      const { sandboxId } = sandbox
      const print = 'echo "$(hostname) $(cat /etc/hostname) $E2B_SANDBOX_ID $GIVEN"; date +%s'
      const beforeSeconds = Date.now() / 1000
      const { stdout } = await sandbox.commands.run(print)
      const [identity, seconds] = stdout.trim().split('\n')
      assert.equal(identity, `${sandboxId} ${sandboxId} ${sandboxId} to one`)
      const isCurrent =
        Number(seconds) > beforeSeconds - 5 && Number(seconds) < Date.now() / 1000 + 5
      assert.ok(isCurrent, `${seconds} inside`)
      assert.deepEqual(await sandbox.commands.list(), [])
      assert.equal(
        await envdStatus(sandboxId, String(Reflect.get(sandbox, 'envdAccessToken'))),
        200,
      )
      assert.equal(await envdStatus(sandboxId, '0'.repeat(64)), 401)
      await sandbox.kill()
    })

    test('a create without variables takes a cell with a preassigned identity', async () => {
      // The first cells of the pool may have been created before the API offered identities.
      const creates = (await waitForFullPool()).map(() => Sandbox.create(connection))
      for (const earlierSandbox of await Promise.all(creates)) await earlierSandbox.kill()
      await waitForFullPool()
      const createStartMs = Date.now()
      const sandbox = await Sandbox.create(connection)
      const { sandboxId } = sandbox
      const print =
        'echo "$(hostname) $(cat /etc/hostname) $E2B_SANDBOX_ID"; stat -c %.3Y /etc/hostname'
      const { stdout } = await sandbox.commands.run(print)
      const [identity, seconds] = stdout.trim().split('\n')
      assert.equal(identity, `${sandboxId} ${sandboxId} ${sandboxId}`)
      assert.ok(Number(seconds) * 1000 < createStartMs, `${seconds} is after ${createStartMs}`)
      assert.deepEqual(await sandbox.commands.list(), [])
      assert.equal(await envdStatus(sandboxId, '0'.repeat(64)), 401)
      await sandbox.kill()
    })

    test('status and operators show the pre-warmed cells, and a restarted server adopts them', async () => {
      const cells = await waitForFullPool()
      const { stdout } = await tryRun(atoll, ['status'], { env: installation.env })
      assert.match(stdout, new RegExp(`^ready +${cells.length} of base$`, 'm'))
      assert.equal((await poolOfBase()).ready, cells.length)

      await installation.interrupt()
      await installation.start()
      assert.deepEqual(await readyCells(), cells)
      const sandbox = await Sandbox.create(connection)
      assert.ok(cells.includes(await cellOf(names, sandbox.sandboxId)))
      assert.equal((await sandbox.commands.run('hostname')).stdout, `${sandbox.sandboxId}\n`)
      await sandbox.kill()
    })

    test('creates beyond the size of the pool succeed, each with its own cell', async () => {
      const cells = await waitForFullPool()
      const creates = Array.from({ length: cells.length + 3 }, () => Sandbox.create(connection))
      const sandboxes = await Promise.all(creates)
      const outputs = await Promise.all(
        sandboxes.map((sandbox) => sandbox.commands.run('hostname')),
      )
      assert.deepEqual(
        outputs.map(({ stdout }) => stdout.trim()),
        sandboxes.map(({ sandboxId }) => sandboxId),
      )
      const cellIds = sandboxes.map(({ sandboxId }) => cellOf(names, sandboxId))
      assert.equal(new Set(await Promise.all(cellIds)).size, sandboxes.length)
      await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
    })

    /** Waits until the pool is full. Returns the IDs of its cells. */
    function waitForFullPool(): Promise<string[]> {
      return waitFor(
        'the pool to be full',
        async () => {
          const pool = await poolOfBase()
          const cells = await readyCells()
          return pool.ready > 0 && pool.ready >= pool.target && pool.ready === cells.length && cells
        },
        polling,
      )
    }

    async function poolOfBase(): Promise<{ readonly ready: number; readonly target: number }> {
      const headers = { 'X-Admin-Token': adminToken }
      const reply = await fetch(`${installation.url}/nodes`, { headers })
      const [node] = Object(await reply.json())
      assert.deepEqual(
        node.pools.map(({ templateID }: { templateID: string }) => templateID),
        ['base'],
      )
      return node.pools[0]
    }

    async function readyCells(): Promise<string[]> {
      const cellsDir = join(installation.dataDir, 'cells')
      // The first cell makes the folder.
      const cellIds = await readdir(cellsDir).catch(() => [])
      const records = cellIds.map(async (cellId) => {
        const text = await readFile(join(cellsDir, cellId, 'cell.json'), 'utf8').catch(() => '{}')
        return JSON.parse(text).phase === 'ready' ? [cellId] : []
      })
      return (await Promise.all(records)).flat().toSorted()
    }

    async function envdStatus(sandboxId: string, token: string): Promise<number> {
      const headers = {
        'E2b-Sandbox-Id': sandboxId,
        'E2b-Sandbox-Port': '49983',
        'X-Access-Token': token,
      }
      const reply = await fetch(`${installation.url}/files?path=/etc/hostname`, { headers })
      await reply.text()
      return reply.status
    }
  })
}
