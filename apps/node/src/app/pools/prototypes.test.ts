import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { Quarantined } from '../../domain/sandboxes/quarantine.ts'
import type { Snapshot, SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import { parseSubnet, toSlot } from '../../domain/network/slot.ts'
import type { CellPlan, TemplateFiles } from '../lifecycle/cells.ts'
import { createPrototypes } from './prototypes.ts'

const day = 24 * 60 * 60 * 1000

function setup(save: () => Promise<void> = async () => {}) {
  const clock = { nowMs: 0 }
  const stored = new Map<string, Snapshot>()
  const damaged: Quarantined[] = []
  const templates = new Map<string, TemplateFiles>([
    ['base', { layer: 'sha' }],
    ['mine', { layer: 's1', setup: { user: 'user', envVars: { A: 'b', C: 'd' } } }],
  ])
  const slot = toSlot(parseSubnet('10.0.0.0/24'), 'at', 1)
  const store: SnapshotStore = {
    add: async () => {},
    addTemporary: async () => {},
    isTemporary: () => false,
    find: async (id) => stored.get(id),
    list: async () => [...stored.values()],
    listQuarantined: async () => damaged.splice(0),
    reseal: async () => ({ resealed: 0, unreadable: 0 }),
    place: (id) => ({ disk: `/${id}/disk`, memoryDir: `/${id}/memory` }),
    sizeBytes: async () => 1,
    remove: async (id) => void stored.delete(id),
    sweep: async () => {},
  }
  const create = () =>
    createPrototypes({
      isBuiltIn: (templateId) => templateId === 'base',
      cells: {
        async make({ shape }: CellPlan) {
          const parts = { runtime: 'gvisor', layer: '', envd: 'e1', initToken: '' } as const
          return { record: { ...shape, ...parts, cellId: 'c1', phase: 'making', disk: '' }, slot }
        },
        expectRestores: async () => {},
        launch: () => assert.fail(),
        beginHalt: () => assert.fail(),
        halt: async () => {},
        erase: async () => {},
      },
      store,
      memoryFormat: 'v1',
      findTemplate: (id) => templates.get(id),
      envdDir: '/envd/e1',
      runStartCommand: async () => {},
      async save({ record }, snapshotId) {
        await save()
        const snapshot = { ...record, snapshotId, envVars: {} }
        stored.set(snapshotId, snapshot)
        return snapshot
      },
      nowMs: () => clock.nowMs,
    })
  return { prototypes: create(), create, stored, templates, clock }
}

const shapeOf = (templateId: string) => ({ templateId, cpuCount: 1, memoryMb: 128, diskSizeMb: 64 })

test('a prototype that was not used for a day is removed, except that of base', async () => {
  const { prototypes, clock } = setup()
  await prototypes.ensure(shapeOf('base'))
  await prototypes.ensure(shapeOf('mine'))
  clock.nowMs = day - 1
  await prototypes.trim()
  assert.ok(await prototypes.find(shapeOf('mine')))
  clock.nowMs = 2 * day - 2
  await prototypes.trim()
  assert.ok(await prototypes.find(shapeOf('mine')))
  clock.nowMs = 4 * day
  await prototypes.trim()
  assert.equal(await prototypes.find(shapeOf('mine')), undefined)
  assert.ok(await prototypes.find(shapeOf('base')))
})

test('a prototype is found again after a restart, whatever the order of its variables', async () => {
  const { prototypes, create, templates, stored } = setup()
  await prototypes.ensure(shapeOf('mine'))
  templates.set('mine', { layer: 's1', setup: { envVars: { C: 'd', A: 'b' }, user: 'user' } })
  const again = create()
  assert.equal((await again.open()).length, 1)
  assert.ok(await again.find(shapeOf('mine')))
  templates.set('mine', { layer: 's1', setup: { envVars: { A: 'other' }, user: 'user' } })
  assert.equal((await create().open()).length, 0)
  assert.equal(stored.size, 0)
})

test('a failed save of memory is not repeated', async () => {
  let tries = 0
  const { prototypes } = setup(async () => {
    tries += 1
    throw new Fault('invalid', 'deleted_file_open', 'A deleted file is open')
  })
  await assert.rejects(prototypes.ensure(shapeOf('mine')), { reason: 'deleted_file_open' })
  assert.equal(await prototypes.ensure(shapeOf('mine')), false)
  assert.equal(tries, 1)
})
