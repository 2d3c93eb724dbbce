import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startCapture } from './capture.ts'
import { toInstallation } from './domain/host/installation.ts'
import type { PausedSandbox } from './domain/sandboxes/sandbox.ts'
import { newKeys } from './sim/keys.ts'
import { createRecordStore } from './state/records.ts'

test('a backup has the record of an evicted sandbox, and misses no files of it', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-capture-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const [dataDir, into] = [join(dir, 'data'), join(dir, 'data/.backup')]
  await mkdir(into, { recursive: true })
  const evicted: PausedSandbox = {
    ...{ templateId: 'base', cpuCount: 1, memoryMb: 128, diskSizeMb: 16, runtime: 'gvisor' },
    ...{ layer: 'not here', envd: 'not here', initToken: 'secret', memory: 'release' },
    ...{ cellId: 'c1', phase: 'evicted', disk: 'disk.img', keptGeneration: 2, keptId: 'k' },
    owner: { sandboxId: 'i1', generation: 2, envVars: {} },
  }
  await createRecordStore(toInstallation(dataDir), newKeys()).create(evicted)
  const capture = startCapture(
    { dataDir, layersDir: join(dir, 'layers'), into },
    { forEachPaused: (task) => task(evicted) },
  )
  await capture.collect()
  const { sandboxIds, folders, damaged, memoryReleases } = await capture.finish()
  assert.deepEqual([sandboxIds, damaged, memoryReleases], [['i1'], [], []])
  assert.deepEqual(
    folders.map(({ path }) => path),
    ['cells/c1'],
  )
  assert.deepEqual(await readdir(join(into, 'cells/c1')), ['cell.json'])
})
