import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { hostState, namesOf } from '../host-state.ts'
import { install, layersDir as sharedLayersDir } from '../installation.ts'
import { runtimes, shell } from '../shell.ts'

/** Makes a data directory whose layers are in it, as in an installation without the setting of these tests. */
async function fillWithLayers(dataDir: string): Promise<string> {
  const layersDir = join(dataDir, 'layers')
  await mkdir(layersDir, { recursive: true })
  const names = (await readdir(sharedLayersDir)).filter((name) => !name.startsWith('.'))
  const copied = [...names.map((name) => join(sharedLayersDir, name)), layersDir]
  // Layers never change, so links do. Another file system needs a copy.
  const { code } = await tryRun('cp', ['--archive', '--link', ...copied])
  if (code !== 0) await run('cp', ['--archive', ...copied], { timeoutMs: 300_000 })
  return layersDir
}

for (const runtime of runtimes) {
  describe(`a new installation at the path of a deleted one, under ${runtime}`, () => {
    test('its sandboxes work, and nothing of the old ones is left', async () => {
      const dataDir = await mkdtemp('/var/tmp/atoll-test-')
      await using installation = await install({
        ATOLL_DATA_DIR: dataDir,
        ATOLL_LAYERS_DIR: await fillWithLayers(dataDir),
        ATOLL_RUNTIME: runtime,
        ATOLL_BASE_MEMORY_MB: '256',
      })
      const { connection } = installation
      const old = await Sandbox.create('base', { ...connection, timeoutMs: 600_000 })
      assert.equal((await shell(old, 'echo old > /tmp/mine && cat /tmp/mine')).stdout, 'old\n')
      const names = await namesOf(dataDir)
      const describeHost = async () => JSON.stringify(await hostState(names, dataDir))
      const oldCells = (await readdir(join(dataDir, 'cells'))).filter((name) =>
        name.startsWith('c'),
      )
      const before = await describeHost()
      assert.ok(oldCells.some((cell) => before.includes(cell)))

      await installation.crash()
      await rm(dataDir, { recursive: true })
      await fillWithLayers(dataDir)
      await installation.start()
      const { apiKey } = JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'))
      const options = { ...connection, apiKey, timeoutMs: 600_000 }
      const sandbox = await Sandbox.create('base', options)
      const made = await shell(sandbox, 'cat /tmp/mine; echo new > /tmp/mine && cat /tmp/mine')
      assert.equal(made.stdout, 'new\n')
      if (runtime === 'gvisor') {
        await sandbox.pause()
        const resumed = await Sandbox.connect(sandbox.sandboxId, options)
        assert.equal((await shell(resumed, 'cat /tmp/mine')).stdout, 'new\n')
      }
      await waitFor('the end of the old sandboxes', async () => {
        const now = await describeHost()
        return !oldCells.some((cell) => now.includes(cell)) && !now.includes('deleted')
      })
    })
  })
}
