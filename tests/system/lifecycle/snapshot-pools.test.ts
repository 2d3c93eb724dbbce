/** Warm pools of snapshots: copies that are restored before a create asks for them. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { cellOf, namesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 100, timeoutMs: 180_000 }
const adminToken = 'operators-only-token'

suite('pools of snapshots on gvisor', () => {
  let installation: Installation
  let connection: Installation['connection']
  let names: Names
  let snapshotId: string

  before(async () => {
    installation = await install({
      ATOLL_RUNTIME: 'gvisor',
      ATOLL_BASE_MEMORY_MB: '256',
      ATOLL_POOL_MEMORY_MB: '2000',
      ATOLL_ADMIN_TOKEN: adminToken,
    })
    connection = installation.connection
    names = await namesOf(installation.dataDir)
    const original = await Sandbox.create(connection)
    // Only memory has the value: the shell keeps it in a variable, and writes it when it gets a signal.
    await original.commands.run(
      `trap 'echo "$kept $$" > /tmp/kept' USR1; read kept < /proc/sys/kernel/random/uuid; while :; do sleep 0.1; done`,
      { background: true },
    )
    snapshotId = (await original.createSnapshot()).snapshotId
    await original.kill()
  })
  after(() => installation[Symbol.asyncDispose]())

  test('a copy that is ready has the memory of the snapshot and the identity, network and variables of the request', async () => {
    const [first, second] = [await createCopy(), await createCopy()]
    const kept = await readKept(first)
    assert.equal(await readKept(second), kept)
    const ready = await waitForCopies()

    const envs = { GIVEN: 'to one' }
    const third = await Sandbox.create(snapshotId, { ...connection, envs })
    assert.ok(ready.includes(await cellOf(names, third.sandboxId)))
    assert.equal(await readKept(third), kept)
    const { stdout } = await third.commands.run('echo "$(hostname) $E2B_SANDBOX_ID $GIVEN"')
    assert.equal(stdout, `${third.sandboxId} ${third.sandboxId} to one\n`)
    await Promise.all([first, second, third].map((sandbox) => sandbox.kill()))
  })

  test('a create of the template gets no copy, and a crash of the server leaves none', async () => {
    const sandboxes = [await createCopy(), await createCopy()]
    const ready = await waitForCopies()
    const plain = await Sandbox.create(connection)
    assert.ok(!ready.includes(await cellOf(names, plain.sandboxId)))

    await installation.crash()
    await installation.start()
    const left = await cellsWithoutOwner()
    assert.deepEqual(
      ready.filter((cellId) => left.includes(cellId)),
      [],
    )
    sandboxes.push(await createCopy())
    await Promise.all([...sandboxes, plain].map((sandbox) => sandbox.kill()))
  })

  test('the copies of a deleted snapshot are removed', async () => {
    const sandboxes = [await createCopy(), await createCopy()]
    const ready = await waitForCopies()
    await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
    await Sandbox.deleteSnapshot(snapshotId, connection)
    await waitFor(
      'the copies to be removed',
      async () => {
        const left = await cellsWithoutOwner()
        return ready.every((cellId) => !left.includes(cellId))
      },
      polling,
    )
  })

  function createCopy(): Promise<Sandbox> {
    return Sandbox.create(snapshotId, connection)
  }

  /** Returns the value that the shell of the snapshot has in its memory. */
  async function readKept(sandbox: Sandbox): Promise<string> {
    const command =
      'pkill -USR1 -f "trap .*USR1" --oldest; until [ -s /tmp/kept ]; do sleep 0.05; done; cut -d" " -f1 /tmp/kept'
    return (await sandbox.commands.run(command)).stdout.trim()
  }

  /** Waits until the pool of the snapshot is full. Returns the IDs of its cells. */
  function waitForCopies(): Promise<string[]> {
    return waitFor(
      'the pool of the snapshot to be full',
      async () => {
        const reply = await fetch(`${installation.url}/nodes`, {
          headers: { 'X-Admin-Token': adminToken },
        })
        const [node] = Object(await reply.json())
        const [pool] = node.snapshotPools
        const cells = await cellsWithoutOwner()
        return pool && pool.ready >= pool.target && pool.ready === cells.length && cells
      },
      polling,
    )
  }

  /** IDs of cells of the snapshot that no sandbox owns. Cells of the template's pool are `ready`, blank ones have no template. */
  async function cellsWithoutOwner(): Promise<string[]> {
    const dir = join(installation.dataDir, 'cells')
    const records = (await readdir(dir)).map(async (cellId) => {
      const text = await readFile(join(dir, cellId, 'cell.json'), 'utf8').catch(() => '{}')
      const { phase, owner, templateId } = JSON.parse(text)
      return phase === 'making' && !owner && templateId ? [cellId] : []
    })
    return (await Promise.all(records)).flat()
  }
})
