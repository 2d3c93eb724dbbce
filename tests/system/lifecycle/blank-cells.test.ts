/** Restores into blank cells, which the node makes by recent demand. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { createPlatformClient } from '@atoll/client/platform'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { cellOf, cells, hostState, namesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { serverErrors } from '../server-errors.ts'
import { consistentTraces, tracesOf } from '../traces.ts'

const patient = { timeoutMs: 120_000, intervalMs: 100 }
const settings = {
  ATOLL_RUNTIME: 'gvisor',
  ATOLL_BASE_MEMORY_MB: '256',
  ATOLL_READY_SANDBOXES: '0',
  // No slots in advance: they would look like leftovers.
  ATOLL_READY_SLOTS: '0',
  ATOLL_POOL_MEMORY_MB: '1000',
}

suite('blank cells', () => {
  let installation: Installation
  let connection: Installation['connection']
  let names: Names

  before(async () => {
    installation = await install(settings)
    connection = installation.connection
    names = await namesOf(installation.dataDir)
  })
  after(() => installation[Symbol.asyncDispose]())

  const blankCells = async () => (await cells(names.dataDir)).filter(({ isBlank }) => isBlank)
  /** Waits until the host has nothing of sandboxes except blank and pre-warmed ones, each of them complete. */
  const waitForNoLeftovers = async () => {
    const compare = async () => {
      const prewarmed = (await cells(names.dataDir)).filter(({ phase }) => phase === 'ready')
      const traces = await tracesOf(names)
      return { traces, expected: consistentTraces(traces, prewarmed.length) }
    }
    await waitFor(
      'the host to have no leftovers',
      async () => {
        const { traces, expected } = await compare()
        return isDeepStrictEqual(traces, expected)
      },
      patient,
    ).catch(() => {})
    const { traces, expected } = await compare()
    assert.deepEqual(traces, expected)
  }
  /** Checks that a sandbox was restored into a blank cell: only these have a root of their own in their bundle. */
  const checkWasBlank = async ({ sandboxId }: Pick<Sandbox, 'sandboxId'>) => {
    const root = join(names.dataDir, 'cells', await cellOf(names, sandboxId), 'bundle/root')
    assert.ok(existsSync(root), `${root} is missing\n${await serverErrors(names.dataDir)}`)
  }
  /** Waits until the node has a blank cell. */
  const waitForBlanks = () =>
    waitFor(
      'a blank cell',
      async () => {
        const blanks = (await blankCells()).map(({ cellId }) => cellId)
        return blanks.length > 0 && blanks
      },
      patient,
    )

  test('sandboxes from a snapshot and resumed ones run in blank cells, apart from each other', async () => {
    const original = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    await original.files.write('/home/user/note', 'before')
    const { snapshotId } = await original.createSnapshot()
    const first = await Sandbox.create(snapshotId, { ...connection, timeoutMs: 600_000 })
    await waitForBlanks()
    const second = await Sandbox.create(snapshotId, { ...connection, timeoutMs: 600_000 })
    await checkWasBlank(second)
    await second.files.write('/home/user/note', 'second')
    for (const [sandbox, text] of [
      [first, 'before'],
      [second, 'second'],
    ] as const) {
      const { stdout } = await sandbox.commands.run('cat note; hostname; sudo id -u')
      assert.deepEqual(stdout.trim().split('\n'), [`${text}${sandbox.sandboxId}`, '0'])
    }
    const randomBytes = 'head -c 16 /dev/urandom | od -An -tx1'
    const drawn = await Promise.all([first, second].map((one) => one.commands.run(randomBytes)))
    assert.notEqual(drawn[0]?.stdout, drawn[1]?.stdout)

    await second.pause()
    await waitForBlanks()
    await second.connect()
    await checkWasBlank(second)
    assert.equal(await second.files.read('/home/user/note'), 'second')
    await Promise.all([original, first, second].map((sandbox) => sandbox.kill()))
    await Sandbox.deleteSnapshot(snapshotId, connection)
  })

  test('a fork has its own files and processes, in blank cells that were made meanwhile', async () => {
    const original = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    await original.files.write('/home/user/note', 'before')
    const results = await original.fork({ ...connection, count: 3, timeoutMs: 600_000 })
    const copies = results.filter((result) => result instanceof Sandbox)
    assert.equal(copies.length, 3)
    for (const copy of copies) await checkWasBlank(copy)
    await Promise.all(copies.map((copy, index) => copy.files.write('note', `${index}`)))
    const texts = await Promise.all([original, ...copies].map((one) => one.files.read('note')))
    assert.deepEqual(texts, ['before', '0', '1', '2'])
    await Promise.all([original, ...copies].map((sandbox) => sandbox.kill()))
  })

  test('a crash leaves none behind, and running sandboxes keep running', async () => {
    const original = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    const { snapshotId } = await original.createSnapshot()
    const copy = await Sandbox.create(snapshotId, { ...connection, timeoutMs: 600_000 })
    const blanks = await waitForBlanks()
    const creating = Sandbox.create(snapshotId, { ...connection, timeoutMs: 600_000 }).catch(
      () => undefined,
    )
    await installation.crash()
    await creating
    await installation.start()
    const left = await cells(names.dataDir)
    assert.deepEqual(
      left.filter(({ cellId }) => blanks.includes(cellId)),
      [],
    )
    for (const sandbox of [original, copy]) await sandbox.commands.run('true')
    // The create that was cut off may have succeeded: the answer did not arrive.
    const client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
    for (const { sandboxID } of await Array.fromAsync(client.listSandboxes())) {
      await client.killSandbox(sandboxID)
    }
    await Sandbox.deleteSnapshot(snapshotId, connection)
    await waitForNoLeftovers()
  })

  test('are gone after atoll down', async () => {
    const original = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    const { snapshotId } = await original.createSnapshot()
    await Sandbox.create(snapshotId, { ...connection, timeoutMs: 600_000 })
    await waitForBlanks()
    await installation.crash()
    await installation.down()
    const remaining = async () => {
      const state = await hostState(names, '')
      return Object.entries(state).filter(([, items]) => items.length > 0)
    }
    // A killed process stays visible until PID 1 of the host reaps it.
    const isGone = async () => (await remaining()).length === 0
    await waitFor('the last process to be reaped', isGone, patient).catch(() => {})
    assert.deepEqual(await remaining(), [])
  })
})
