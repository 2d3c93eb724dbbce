import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { CatalogueTemplate } from '../../domain/catalogue/catalogue.ts'
import { createInstalls } from './installs.ts'

const template: CatalogueTemplate = {
  ...{ templateId: 'toolsv1', name: 'tools', alias: 'tools-v1', description: '' },
  ...{ leastMemoryMb: 128, setup: { user: 'user', envVars: {} } },
}
const shape = { templateId: 'toolsv1', cpuCount: 1, memoryMb: 128, diskSizeMb: 64 }

function setup(prototype: () => Promise<boolean> = async () => true) {
  const gate = Promise.withResolvers<void>()
  const state = { prepared: 0, isInstalled: false }
  const installs = createInstalls({
    catalogue: [template],
    find: () => (state.isInstalled ? { layer: 'l1' } : undefined),
    async prepare(_templateId, onProgress, signal) {
      state.prepared += 1
      onProgress('packages', 0.5)
      const aborted = new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      )
      await Promise.race([gate.promise, aborted])
      state.isInstalled = true
      return { layer: 'l1' }
    },
    ensurePrototype: prototype,
  })
  return { installs, state, open: gate.resolve }
}

test('two installs of a template at once are one, and both see its progress', async () => {
  const { installs, state, open } = setup()
  const seen: string[] = []
  const first = installs.install(shape, (label, fraction) => seen.push(`1 ${label} ${fraction}`))
  const second = installs.install(shape, (label, fraction) => seen.push(`2 ${label} ${fraction}`))
  open()
  await Promise.all([first, second])
  assert.equal(state.prepared, 1)
  assert.deepEqual(seen.slice(-2), ['1 done 1', '2 done 1'])
  assert.deepEqual(
    installs.list().map(({ isInstalled }) => isInstalled),
    [true],
  )
})

test('closing cancels an install, and no other begins', async () => {
  const { installs, state } = setup()
  const install = installs.install(shape, () => {})
  const failed = assert.rejects(install, { name: 'AbortError' })
  await installs.close()
  await failed
  await assert.rejects(
    installs.install(shape, () => {}),
    { name: 'AbortError' },
  )
  assert.equal(state.isInstalled, false)
})

test('a template whose memory cannot be saved is installed, one that does not start is not', async () => {
  const unsaved = setup(async () => {
    throw new Fault('invalid', 'memory_not_kept', 'no memory')
  })
  unsaved.open()
  await unsaved.installs.install(shape, () => {})
  const broken = setup(async () => {
    throw new Fault('timeout', 'not_ready', 'not ready')
  })
  broken.open()
  await assert.rejects(
    broken.installs.install(shape, () => {}),
    { reason: 'not_ready' },
  )
})

test('only templates of the catalogue can be installed', async () => {
  const { installs } = setup()
  const unknown = installs.install({ ...shape, templateId: 'other' }, () => {})
  await assert.rejects(unknown, { kind: 'not_found' })
})
