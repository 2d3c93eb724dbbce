import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { parseSubnet, toSlot } from '../../domain/network/slot.ts'
import type { Cell } from '../../domain/sandboxes/cell.ts'
import { createBlankCells } from './blank-cells.ts'
import type { BlankCellPorts } from './blank-supplies.ts'

const kind = { cpuCount: 1, memoryMb: 256, runtime: 'gvisor', envd: 'e1', hasSudo: true } as const
const subnet = parseSubnet('10.0.0.0/24')

suite('blank cells', () => {
  test('are made by demand, used once, and removed when the demand is over', async () => {
    const { blanks, cells, clock, useOne } = setup()
    assert.equal(await useOne(), undefined)
    await waitFor('a blank cell', async () => blanks.count() === 1)
    assert.equal(await useOne(), 'c1')
    await waitFor('another blank cell', async () => blanks.count() >= 1)
    clock.ms += 3_600_000
    await blanks.trim()
    assert.equal(blanks.count(), 0)
    assert.deepEqual([...cells], ['c1'])
  })

  test('of another kind do not serve a request', async () => {
    const { blanks } = setup()
    blanks.expect(kind, 1)
    await waitFor('a blank cell', async () => blanks.count() === 1)
    const others = [{ memoryMb: 512 }, { cpuCount: 2 }, { envd: 'e2' }, { hasSudo: false }]
    for (const other of others) {
      await blanks.use({ ...kind, ...other }, async (blank) => assert.equal(blank, undefined))
    }
  })

  test('under way serve requests that come meanwhile, each one', async () => {
    const { blanks, useOne } = setup()
    blanks.expect(kind, 3)
    const used = await Promise.all([useOne(), useOne(), useOne(), useOne()])
    assert.deepEqual(new Set(used), new Set(['c1', 'c2', 'c3', undefined]))
  })

  test('never exceed their limit', async () => {
    const { blanks, cells } = setup()
    blanks.expect(kind, 100)
    await waitFor('the limit', async () => blanks.count() === 4)
    assert.equal(cells.size, 4)
  })

  test('that fail are replaced by a plain restore, and are off after several failures', async () => {
    const { blanks, cells, clock, useOne, ports } = setup()
    blanks.expect(kind, 4)
    await waitFor('four blank cells', async () => blanks.count() === 4)
    for (let round = 0; round < 3; round += 1) {
      const seen = await blanks.use(kind, async (blank) => {
        if (!blank) return 'plain'
        await ports.erase(blank)
        throw new Error('the restore failed')
      })
      assert.equal(seen, 'plain')
    }
    await waitFor('no blank cell', async () => cells.size === 0)
    blanks.expect(kind, 1)
    assert.equal(await useOne(), undefined)
    clock.ms += 120_000
    blanks.expect(kind, 1)
    assert.notEqual(await useOne(), undefined)
  })

  test('are not blamed when the host is full', async () => {
    const { blanks } = setup()
    blanks.expect(kind, 1)
    await waitFor('a blank cell', async () => blanks.count() === 1)
    let attempts = 0
    const full = new Fault('exhausted', 'disk_full', 'no space')
    const used = blanks.use(kind, async () => {
      attempts += 1
      throw full
    })
    await assert.rejects(used, full)
    assert.equal(attempts, 1)
  })

  test('whose process has died are removed and not used', async () => {
    const { blanks, cells, useOne, dead } = setup()
    blanks.expect(kind, 2)
    await waitFor('two blank cells', async () => blanks.count() === 2)
    dead.add('c1')
    assert.equal(await useOne(), 'c2')
    assert.deepEqual([...cells], ['c2'])
  })

  test('are given up when the host is short, and not made without room', async () => {
    const { blanks, cells, room } = setup()
    blanks.expect(kind, 2)
    await waitFor('two blank cells', async () => blanks.count() === 2)
    assert.equal(await blanks.giveUp(), true)
    assert.equal(await blanks.giveUp(), false)
    room.isThere = false
    blanks.expect(kind, 1)
    await blanks.close()
    assert.equal(cells.size, 0)
  })
})

function setup() {
  const clock = { ms: 0 }
  const room = { isThere: true }
  const cells = new Set<string>()
  const dead = new Set<string>()
  let made = 0
  const ports: BlankCellPorts = {
    async make() {
      const cellId = `c${(made += 1)}`
      cells.add(cellId)
      return blankCell(cellId, made)
    },
    erase: async ({ record }) => void cells.delete(record.cellId),
    isAlive: ({ record }) => !dead.has(record.cellId),
    hasRoom: async () => room.isThere,
    nowMs: () => clock.ms,
    onError: () => {},
  }
  const blanks = createBlankCells({ ports, limit: 4 })
  const useOne = () => blanks.use(kind, async (blank) => blank?.record.cellId)
  return { blanks, cells, clock, room, dead, useOne, ports }
}

function blankCell(cellId: string, slotNumber: number): Cell {
  const parts = { templateId: '', layer: '', diskSizeMb: 0, initToken: '', disk: 'disk.img' }
  return {
    record: { ...kind, ...parts, cellId, phase: 'making', slotNumber },
    slot: toSlot(subnet, 'at', slotNumber),
  }
}
