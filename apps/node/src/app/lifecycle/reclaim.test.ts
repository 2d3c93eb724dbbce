import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasSameParts } from '../../domain/sandboxes/cell.ts'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import { parseSubnet } from '../../domain/network/slot.ts'
import { reclaim } from './reclaim.ts'

function record(cellId: string, pid: number, changes: Partial<CellRecord>): CellRecord {
  return {
    templateId: 'base',
    cpuCount: 1,
    memoryMb: 256,
    diskSizeMb: 64,
    runtime: 'gvisor',
    layer: 'l1',
    envd: 'e1',
    release: 'runsc 1',
    initToken: 't',
    disk: 'disk.img',
    cellId,
    phase: 'running',
    slotNumber: pid,
    process: { pid, started: 'then' },
    owner: { sandboxId: `of${cellId}`, envVars: {} },
    ...changes,
  }
}

function withoutOwner({ owner: _owner, ...rest }: CellRecord): CellRecord {
  return rest
}

const paused = (({ process: _process, slotNumber: _slot, ...rest }) => rest)(
  record('paused', 4, { phase: 'paused', memory: 'runsc 1' }),
)

const found = [
  record('alive', 1, {}),
  record('dead', 2, {}),
  record('half', 3, { phase: 'making' }),
  paused,
  record('resuming', 5, { phase: 'resuming', memory: 'runsc 1' }),
  record('copying', 6, { phase: 'copying' }),
  withoutOwner(record('ready', 7, { phase: 'ready' })),
  withoutOwner(record('outdated', 8, { phase: 'ready', envd: 'e0' })),
  withoutOwner(record('superseded', 10, { phase: 'ready', release: 'runsc 0' })),
  record('older', 11, { release: 'runsc 0' }),
  // A crash after a resume in a new cell, before the removal of the paused one.
  { ...paused, cellId: 'resumed', phase: 'resuming', owner: { sandboxId: 'ofalive', envVars: {} } },
  // The same, and the sandbox was paused again.
  { ...paused, cellId: 'again', phase: 'resuming' },
  // A resume in a new cell that failed, and whose cell could not be removed.
  record('failed', 12, { owner: { sandboxId: 'ofpaused', envVars: {} } }),
] satisfies CellRecord[]

test('running cells are adopted, paused ones are kept, and everything else is erased', async () => {
  const done: Record<
    'erased' | 'halted' | 'thawed' | 'woken' | 'tidied' | 'removedSlots',
    string[]
  > = {
    erased: [],
    halted: [],
    thawed: [],
    woken: [],
    tidied: [],
    removedSlots: [],
  }
  const updated: CellRecord[] = []
  const strayKeepers: ReadonlySet<string>[] = []
  const reclaimed = await reclaim(
    {
      records: {
        list: async () => [
          ...found.map((one) => ({ cellId: one.cellId, record: one })),
          { cellId: 'leftover' },
        ],
        update: async (one) => void updated.push(one),
      },
      isAlive: ({ pid }) => pid !== 2,
      isCurrent: (one) => hasSameParts(one, record('current', 0, {})),
      traces: async () => ['alive', 'half', 'stranger', 'resuming'],
      killStrays: async (keep) => void strayKeepers.push(keep),
      thaw: async ({ cellId }) => void done.thawed.push(cellId),
      thawClaimed: async (cellId) => void done.woken.push(cellId),
      onError: assert.ifError,
      halt: async (id) => void done.halted.push(id),
      erase: async (id) => void done.erased.push(id),
      tidy: async ({ cellId }) => void done.tidied.push(cellId),
      slotNames: async () => ['atx-1', 'atx-3', 'atx-5', 'atx-7', 'atx-9'],
      removeSlot: async (slot) => void done.removedSlots.push(slot.link),
    },
    parseSubnet('10.0.0.0/24'),
    'atx-',
  )
  assert.deepEqual(
    reclaimed.running.map((one) => [one.record.cellId, one.record.phase, one.slot.number]),
    [
      ['alive', 'running', 1],
      ['copying', 'running', 6],
      ['older', 'running', 11],
    ],
  )
  assert.deepEqual(
    reclaimed.ready.map((one) => one.record.cellId),
    ['ready'],
  )
  const resumed = { ...paused, cellId: 'resuming', owner: { sandboxId: 'ofresuming', envVars: {} } }
  assert.deepEqual(reclaimed.paused, [paused, resumed])
  assert.deepEqual(done.erased.toSorted(), [
    'again',
    'dead',
    'failed',
    'half',
    'leftover',
    'outdated',
    'resumed',
    'stranger',
    'superseded',
  ])
  assert.deepEqual(done.halted.toSorted(), ['paused', 'resuming'])
  assert.deepEqual(done.thawed, ['copying'])
  // The earlier agent may have been killed between the record update and the wake.
  assert.deepEqual(done.woken, ['alive', 'copying', 'older'])
  assert.deepEqual(done.tidied.toSorted(), ['alive', 'copying', 'older', 'paused', 'resuming'])
  assert.deepEqual(done.removedSlots, ['atx-3', 'atx-5', 'atx-9'])
  assert.deepEqual(strayKeepers, [new Set(['alive', 'copying', 'older', 'ready'])])
  assert.deepEqual(
    updated.map(({ cellId, phase }) => [cellId, phase]),
    [
      ['resuming', 'paused'],
      ['copying', 'running'],
    ],
  )
})

test('a cell that cannot be thawed is reported, and does not block the start', async () => {
  const updated: CellRecord[] = []
  const errors: unknown[] = []
  const stuck = record('stuck', 1, { phase: 'copying', runtime: 'runc' })
  const nothing = async () => {}
  const reclaimed = await reclaim(
    {
      records: {
        list: async () => [{ cellId: 'stuck', record: stuck }],
        update: async (one) => void updated.push(one),
      },
      isAlive: () => true,
      isCurrent: () => true,
      traces: async () => ['stuck'],
      killStrays: nothing,
      thaw: ({ runtime }) => Promise.reject(new Error(`${runtime} fails`)),
      thawClaimed: async () => {},
      halt: nothing,
      erase: nothing,
      tidy: nothing,
      slotNames: async () => [],
      removeSlot: nothing,
      onError: (error) => void errors.push(error),
    },
    parseSubnet('10.0.0.0/24'),
    'atx-',
  )
  assert.deepEqual(
    reclaimed.running.map((one) => one.record.cellId),
    ['stuck'],
  )
  // This agent or the next one retries.
  assert.deepEqual(reclaimed.stuck, ['stuck'])
  assert.deepEqual([updated, errors.map(String)], [[], ['Error: runc fails']])
})

for (const [shown, keptSlots] of [
  [{ slotNumber: 3 }, [3]],
  // A record that does not show its slot may use any slot that no other cell has.
  [{}, [3, 5]],
] as const) {
  const hint = JSON.stringify(shown)
  test(`a cell whose record cannot be read keeps files, processes and slot (${hint})`, async () => {
    const touched: string[] = []
    const note = async (what: string) => void touched.push(what)
    const strayKeepers: ReadonlySet<string>[] = []
    const damaged = (cellId: string) => ({
      kind: 'sandbox' as const,
      cellId,
      path: `/cells/${cellId}`,
      reason: 'its checksum is wrong',
    })
    const live = { ...damaged('live'), ...shown }
    const idle = damaged('idle')
    const reclaimed = await reclaim(
      {
        records: {
          list: async () => [
            { cellId: 'alive', record: record('alive', 1, {}) },
            { cellId: 'live', quarantined: live },
            { cellId: 'idle', quarantined: idle },
          ],
          update: async () => {},
        },
        isAlive: () => true,
        isCurrent: () => true,
        traces: async () => ['alive', 'live'],
        killStrays: async (keep) => void strayKeepers.push(keep),
        thaw: async () => {},
        thawClaimed: async () => {},
        halt: note,
        erase: note,
        tidy: async ({ cellId }) => assert.equal(cellId, 'alive'),
        slotNames: async () => ['atx-1', 'atx-3', 'atx-5'],
        removeSlot: async ({ link }) => void touched.push(link),
        onError: assert.ifError,
      },
      parseSubnet('10.0.0.0/24'),
      'atx-',
    )
    assert.deepEqual(reclaimed.quarantined, [live, idle])
    assert.deepEqual(
      reclaimed.quarantinedSlots.map(({ number }) => number),
      keptSlots,
    )
    assert.deepEqual(touched, keptSlots.length === 1 ? ['atx-5'] : [])
    assert.deepEqual(strayKeepers, [new Set(['alive', 'live', 'idle'])])
  })
}

/** Cells of one sandbox, of which this node had older content when it took over newer content. */
const takenOver = (cellId: string, generation: number, changes: Partial<CellRecord>) => {
  const { process: _process, slotNumber: _slot, ...rest } = record(cellId, 1, changes)
  return { ...rest, owner: { sandboxId: 'i1', envVars: {}, generation } }
}
const older = takenOver('older', 5, { phase: 'paused', keptGeneration: 5 })
const newer = takenOver('newer', 8, { phase: 'paused', keptGeneration: 7 })
const runs = { ...record('runs', 2, {}), owner: { sandboxId: 'i1', envVars: {}, generation: 9 } }

for (const [what, records, expected] of [
  ['the newer pause is kept', [older, newer], { paused: ['newer'], running: [] }],
  [
    'an interrupted resume of the newer pause is kept',
    [{ ...newer, phase: 'resuming' }, older],
    { paused: ['newer'], running: [] },
  ],
  ['the sandbox that runs since is kept', [older, runs], { paused: [], running: ['runs'] }],
  [
    'a resume of the same generation that failed is not',
    [takenOver('newer', 9, { phase: 'paused', keptGeneration: 7 }), runs],
    { paused: ['newer'], running: [] },
  ],
] as const) {
  test(`of several cells of one sandbox, ${what}`, async () => {
    const erased: string[] = []
    const nothing = async () => {}
    const reclaimed = await reclaim(
      {
        records: {
          list: async () => records.map((one) => ({ cellId: one.cellId, record: one })),
          update: nothing,
        },
        isAlive: () => true,
        isCurrent: () => true,
        traces: async () => [],
        ...{ killStrays: nothing, thaw: nothing, thawClaimed: nothing, halt: nothing },
        erase: async (id) => void erased.push(id),
        tidy: nothing,
        slotNames: async () => [],
        removeSlot: nothing,
        onError: assert.ifError,
      },
      parseSubnet('10.0.0.0/24'),
      'atx-',
    )
    const left = {
      paused: reclaimed.paused.map(({ cellId }) => cellId),
      running: reclaimed.running.map((one) => one.record.cellId),
    }
    assert.deepEqual(left, expected)
    const kept: readonly string[] = [...left.paused, ...left.running]
    assert.deepEqual(
      erased,
      records.map(({ cellId }) => cellId).filter((id) => !kept.includes(id)),
    )
  })
}
