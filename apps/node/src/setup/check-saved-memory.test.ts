import assert from 'node:assert/strict'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { toInstallation } from '../domain/host/installation.ts'
import { noKeys } from '../state/private-values.ts'
import { createRecordStore } from '../state/records.ts'
import { checkSavedMemory } from './check-saved-memory.ts'

const current = 'runsc version release-20250421.0'
const older = 'runsc version 0.0~20240729.0'

test('memory that another release saved is counted, with what helps', async (t) => {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'atoll-saved-')))
  t.after(() => rm(dataDir, { recursive: true }))
  assert.equal((await checkSavedMemory(join(dataDir, 'none'), current)).state, 'ok')
  const records = createRecordStore(toInstallation(dataDir), noKeys)
  await records.create({ ...paused('c1'), memory: current })
  await records.create(paused('c2'))
  assert.equal((await checkSavedMemory(dataDir, current)).state, 'ok')

  await records.create({ ...paused('c3'), memory: older })
  const { state, detail, fix } = await checkSavedMemory(dataDir, current)
  assert.equal(state, 'warn')
  assert.match(detail, /^1 of 2 .*20240729.*20250421/)
  assert.match(fix ?? '', /ATOLL_RUNSC.*memory: false/)
})

function paused(cellId: string) {
  return {
    cellId,
    templateId: 'base',
    cpuCount: 1,
    memoryMb: 256,
    diskSizeMb: 64,
    phase: 'paused',
    runtime: 'gvisor',
    layer: 'l1',
    envd: 'e1',
    initToken: 'token',
    disk: 'disk.img',
    owner: { sandboxId: `i${cellId}`, envVars: {} },
  } as const
}
