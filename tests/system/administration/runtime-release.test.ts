/** Another release of runsc on a machine with running, paused and pre-warmed sandboxes. */
import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 100 }
const otherVersion = 'runsc version release-20990101.0'

suite('another release of runsc', () => {
  let installation: Installation
  let connection: Installation['connection']
  let programsDir: string

  before(async () => {
    installation = await install({
      ATOLL_RUNTIME: 'gvisor',
      ATOLL_BASE_MEMORY_MB: '256',
      ATOLL_POOL_MEMORY_MB: '1000',
      ATOLL_READY_SANDBOXES: '1',
    })
    connection = installation.connection
    programsDir = await mkdtemp(join(tmpdir(), 'atoll-programs-'))
  })
  after(async () => {
    await installation[Symbol.asyncDispose]()
    await rm(programsDir, { recursive: true })
  })

  test('discards pre-warmed cells, and keeps running and paused sandboxes', async () => {
    const running = await Sandbox.create(connection)
    const paused = await Sandbox.create(connection)
    await paused.files.write('/home/user/note', 'kept')
    await paused.pause()
    const { snapshotId } = await running.createSnapshot()
    const [readyCell] = await waitFor('a ready cell', readyCells, polling)
    const prototypes = await readdir(join(installation.dataDir, 'prototypes'))
    assert.equal(prototypes.length, 1)

    await installation.interrupt()
    await installation.start({ PATH: await pathWithOtherVersion() })
    const [nextCell] = await waitFor('another ready cell', readyCells, polling)
    assert.notEqual(nextCell, readyCell)
    assert.equal(await releaseOf(nextCell ?? ''), otherVersion)
    assert.ok(!(await readdir(join(installation.dataDir, 'cells'))).includes(readyCell ?? ''))
    assert.notDeepEqual(await readdir(join(installation.dataDir, 'prototypes')), prototypes)

    assert.equal((await running.commands.run('echo here')).stdout, 'here\n')
    await assert.rejects(paused.connect(), /stays paused: .*20240729.*20990101.*memory: false/)
    await assert.rejects(Sandbox.create(snapshotId, connection), /400: .*20240729.*20990101/)
    const { state } = await Sandbox.getInfo(paused.sandboxId, connection)
    assert.equal(state, 'paused')
    const bootReply = await fetch(`${installation.url}/v2/sandboxes/${paused.sandboxId}/connect`, {
      method: 'POST',
      headers: { 'X-API-Key': installation.apiKey, 'Content-Type': 'application/json' },
      body: JSON.stringify({ memory: false }),
    })
    assert.equal(bootReply.status, 201, await bootReply.text())
    assert.equal(await paused.files.read('/home/user/note'), 'kept')
    const newSandbox = await Sandbox.create(connection)
    assert.equal((await newSandbox.commands.run('hostname')).stdout.trim(), newSandbox.sandboxId)
  })

  /** Writes a wrapper of runsc that reports another version. Returns a PATH that finds the wrapper first. */
  async function pathWithOtherVersion(): Promise<string> {
    const real = (await run('which', ['runsc'])).trim()
    const file = join(programsDir, 'runsc')
    await mkdir(programsDir, { recursive: true })
    const versionReply = `[ "$*" = --version ] && { echo '${otherVersion}'; exit; }`
    await writeFile(file, `#!/bin/sh\n${versionReply}\nexec ${real} "$@"\n`)
    await chmod(file, 0o755)
    return `${programsDir}:${process.env['PATH']}`
  }

  async function readyCells(): Promise<string[] | undefined> {
    const names = await readdir(join(installation.dataDir, 'cells'))
    const records = await Promise.all(names.map(recordOf))
    const cellIds = records.filter(({ phase }) => phase === 'ready').map(({ cellId }) => cellId)
    return cellIds.length > 0 ? cellIds : undefined
  }

  async function releaseOf(cellId: string): Promise<string> {
    return (await recordOf(cellId)).release
  }

  async function recordOf(cellId: string): Promise<Record<'cellId' | 'phase' | 'release', string>> {
    const file = join(installation.dataDir, 'cells', cellId, 'cell.json')
    return JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
  }
})
