/** An operator who names the runsc to use: ATOLL_RUNSC. */
import assert from 'node:assert/strict'
import { copyFile, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { Sandbox } from 'e2b'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

suite('a runsc that an operator names', () => {
  let installation: Installation
  let dir: string
  let runsc: string

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor' })
    dir = await mkdtemp(join(tmpdir(), 'atoll-chosen-'))
    runsc = join(dir, 'runsc-of-my-own')
    await copyFile((await run('which', ['runsc'])).trim(), runsc)
  })
  after(async () => {
    await installation[Symbol.asyncDispose]()
    await rm(dir, { recursive: true })
  })

  test('runs sandboxes, resumes memory of the same release at another path, and is refused if it is not runsc', async () => {
    const { connection } = installation
    const running = await Sandbox.create(connection)
    const paused = await Sandbox.create(connection)
    const shell = await paused.commands.run('while read -r x; do echo "$x $$"; done', {
      background: true,
      timeoutMs: 0,
      stdin: true,
    })
    await paused.pause()
    await installation.interrupt()
    const releases = await releasesOfCells()

    const notRunsc = join(dir, 'not-runsc')
    await writeFile(notRunsc, '#!/bin/sh\necho hello\n', { mode: 0o755 })
    await assert.rejects(
      installation.start({ ATOLL_RUNSC: notRunsc }),
      /ATOLL_RUNSC=\S+not-runsc is refused: .*unset it/,
    )
    assert.deepEqual(await releasesOfCells(), releases)

    await installation.start({ ATOLL_RUNSC: runsc })
    assert.equal((await running.commands.run('echo here')).stdout, 'here\n')
    await paused.connect()
    const processes = await paused.commands.list()
    assert.ok(processes.some(({ pid }) => pid === shell.pid))
    const newSandbox = await Sandbox.create(connection)
    assert.equal((await newSandbox.commands.run('echo new')).stdout, 'new\n')
    await newSandbox.pause()
    await newSandbox.connect()
    assert.deepEqual(new Set(await releasesOfCells()), new Set(releases))
    assert.equal((await programsOfCells()).filter((program) => program === runsc).length, 2)
    const env = { ...installation.env, ATOLL_RUNSC: runsc }
    const report = await run(atoll, ['doctor'], { env })
    assert.match(report, /ok +runsc +0\.0~20240729\S* at \S+runsc-of-my-own:/)
  })

  async function records(): Promise<CellRecord[]> {
    const cells = join(installation.dataDir, 'cells')
    // A folder whose name begins with a dot is being removed.
    const names = (await readdir(cells)).filter((name) => !name.startsWith('.'))
    const texts = names.map((id) => readFile(join(cells, id, 'cell.json'), 'utf8'))
    return (await Promise.all(texts)).map((text): CellRecord => JSON.parse(text))
  }

  async function releasesOfCells(): Promise<string[]> {
    return (await records()).map(({ release }) => release)
  }

  async function programsOfCells(): Promise<string[]> {
    const pids = (await records()).flatMap(
      ({ process: runtimeProcess }) => runtimeProcess?.pid ?? [],
    )
    return Promise.all(pids.map((pid) => readlink(`/proc/${pid}/exe`)))
  }
})

interface CellRecord {
  readonly release: string
  readonly process?: { readonly pid: number }
}
