import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSubnet, toSlot } from '../../domain/network/slot.ts'
import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { CellPlan } from '../lifecycle/cells.ts'
import { createTakeStepCell } from './step-cells.ts'
import type { StepCellPorts, StepCellRequest } from './step-cells.ts'

const shape = { templateId: 'new', cpuCount: 1, memoryMb: 128, diskSizeMb: 64 }
const setup: Setup = { user: 'worker', workdir: '/srv', envVars: { OF: 'parent' } }

/** Creates a node with one unused cell of the template `parent` on the layer `top`. */
function simulate(overrides: Partial<StepCellPorts> = {}) {
  const calls: string[] = []
  const toCell = ({ shape: wanted, files }: CellPlan, cellId: string): Cell => ({
    slot: toSlot(parseSubnet('10.0.0.0/24'), 'at', 1),
    record: {
      ...wanted,
      cellId,
      layer: files?.layer ?? 'top',
      ...(!files && { setup }),
      phase: 'ready',
      disk: 'disk.img',
      runtime: 'gvisor',
      envd: 'e1',
      initToken: '',
    },
  })
  const take = createTakeStepCell({
    cells: { erase: async ({ record }) => void calls.push(`erase ${record.cellId}`) },
    records: {
      update: async ({ cellId, phase }: CellRecord) => void calls.push(`${cellId} is ${phase}`),
    },
    async takeCell(plan) {
      calls.push(`boot ${plan.files?.layer}`)
      return toCell(plan, 'booted')
    },
    async takeWithoutBoot(plan) {
      calls.push(`take ${plan.shape.templateId} ${plan.shape.memoryMb}`)
      return toCell(plan, 'warm')
    },
    thaw: async (cellId) => void calls.push(`thaw ${cellId}`),
    ...overrides,
  })
  const takeOn = (below: string, parentSetup = setup, more: Partial<StepCellRequest> = {}) =>
    take({
      shape,
      below,
      parent: { templateId: 'parent', files: { layer: 'top', setup: parentSetup } },
      signal: new AbortController().signal,
      ...more,
    })
  return { takeOn, calls }
}

test('a step on the files of the parent takes a cell of the parent, out of reach of the warm pool', async () => {
  const { takeOn, calls } = simulate()
  const { cell, isBooted } = await takeOn('top')
  assert.equal(isBooted, false)
  assert.deepEqual(calls, ['take parent 128', 'warm is making', 'thaw warm'])
  const { templateId, setup: kept } = cell.record
  // The step has its own user, directory and variables.
  assert.deepEqual([templateId, kept], ['new', undefined])
})

test('a step on other files, or from an image, boots', async () => {
  const { takeOn, calls } = simulate()
  assert.equal((await takeOn('second')).isBooted, true)
  assert.equal((await takeOn('top', setup, { parent: undefined })).isBooted, true)
  assert.deepEqual(calls, ['boot second', 'boot top'])
})

for (const command of [{ startCommand: 'serve' }, { readyCommand: 'touch /tmp/asked' }]) {
  test(`a parent with ${Object.keys(command)[0]} has changed its memory and files, so the step boots`, async () => {
    const { takeOn, calls } = simulate()
    assert.equal((await takeOn('top', { ...setup, ...command })).isBooted, true)
    assert.deepEqual(calls, ['boot top'])
  })
}

test('a step boots if the parent has no prototype of these sizes', async () => {
  const { takeOn, calls } = simulate({ takeWithoutBoot: async () => undefined })
  assert.equal((await takeOn('top')).isBooted, true)
  assert.deepEqual(calls, ['boot top'])
})

test('a cell of a replaced template is erased, and the step boots', async () => {
  const { takeOn, calls } = simulate()
  const files = { layer: 'old', setup }
  const { isBooted } = await takeOn('old', setup, { parent: { templateId: 'parent', files } })
  assert.equal(isBooted, true)
  assert.deepEqual(calls.slice(-2), ['erase warm', 'boot old'])
})

test('a cell that does not thaw is erased, and the step boots', async () => {
  const { takeOn, calls } = simulate({ thaw: () => Promise.reject(new Error('stays frozen')) })
  assert.equal((await takeOn('top')).isBooted, true)
  assert.deepEqual(calls.slice(-2), ['erase warm', 'boot top'])
})
