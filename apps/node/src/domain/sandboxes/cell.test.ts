import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasSameParts } from './cell.ts'

const current = { runtime: 'gvisor', release: 'runsc 1', layer: 'l1', envd: 'e1' } as const

const cell = {
  ...current,
  templateId: 'base',
  cpuCount: 1,
  memoryMb: 256,
  diskSizeMb: 64,
  initToken: 't',
}

test('a cell with the current parts equals a new cell', () => {
  assert.equal(hasSameParts(cell, current), true)
})

for (const other of [
  { runtime: 'runc' },
  { release: 'runsc 0' },
  { layer: 'l0' },
  { envd: 'e0' },
] as const) {
  test(`a cell with ${JSON.stringify(other)} does not equal a new cell`, () => {
    assert.equal(hasSameParts({ ...cell, ...other }, current), false)
  })
}
