/** Evictions of paused sandboxes: the files go, the record stays, and no crash leaves half of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import { parseSubnet } from '../../domain/network/slot.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { simulateNode } from '../../sim/node.ts'
import { reclaim } from './reclaim.ts'

const request = { sandboxId: 'i1', accessToken: undefined, boot: false }

async function setUpPaused() {
  const node = simulateNode()
  await node.create()
  await node.sandboxes.resume({ ...request, generation: 1 })
  await node.sandboxes.pause('i1', { keepMemory: true, generation: 1 })
  await node.sandboxes.settle()
  const paused = node.sandboxes.paused()[0] ?? assert.fail('not paused')
  const adoption = {
    sandboxId: 'i1',
    keptGeneration: 1,
    keptId: paused.keptId,
    generation: 2,
  }
  return { ...node, paused, adoption }
}

test('an evicted sandbox has a record and no files, and is still paused with the same content', async () => {
  const { sandboxes, records, files, paused } = await setUpPaused()
  assert.equal(await sandboxes.evict(paused), true)
  assert.equal(sandboxes.paused().length, 1)
  const evicted = sandboxes.paused()[0] ?? assert.fail('gone')
  const { cellId: _cell, phase, ...rest } = evicted
  const { cellId: _before, phase: _phase, ...before } = paused
  assert.deepEqual([phase, rest], ['evicted', before])
  assert.deepEqual([...records.keys()], [evicted.cellId])
  assert.deepEqual(
    [...files.keys()].filter((path) => path.startsWith('/cells/')),
    [],
  )
  assert.equal(await sandboxes.evict(evicted), false)
})

test('an evicted sandbox is resumed only after a fetch of the same content', async () => {
  const { sandboxes, records, paused, adoption } = await setUpPaused()
  await sandboxes.evict(paused)
  const refused = { kind: 'conflict', reason: 'sandbox_evicted' }
  await assert.rejects(sandboxes.resume({ ...request, generation: 2 }), refused)
  const inspection = sandboxes.inspect('i1', async () => {}, new AbortController().signal)
  await assert.rejects(inspection, refused)
  const fails = sandboxes.adopt(adoption, () => Promise.reject(new Error('no connection')))
  await assert.rejects(fails, /no connection/)
  assert.equal(sandboxes.paused()[0]?.phase, 'evicted')
  const fetched: PausedSandbox = { ...paused, cellId: 'cfetched' }
  await sandboxes.adopt(adoption, async () => {
    records.set(fetched.cellId, fetched)
    return fetched
  })
  assert.deepEqual([...records.keys()], ['cfetched'])
  await sandboxes.adopt(adoption, () => Promise.reject(new Error('not needed')))
  assert.equal((await sandboxes.resume({ ...request, generation: 2 })).record.owner.generation, 2)
})

test('a fetch of older or other content does not replace the record of evicted content', async () => {
  const { sandboxes, paused, adoption } = await setUpPaused()
  await sandboxes.evict(paused)
  for (const other of [{ keptGeneration: 0 }, { keptId: 'other' }]) {
    const adopting = sandboxes.adopt({ ...adoption, ...other }, async () => paused)
    await assert.rejects(adopting, { reason: 'content_not_older' })
  }
})

test('what was resumed, paused again or is worked on is not evicted', async () => {
  const { sandboxes, paused } = await setUpPaused()
  const looking = Promise.withResolvers<void>()
  const inspection = sandboxes.inspect('i1', () => looking.promise, new AbortController().signal)
  assert.equal(await sandboxes.evict(paused), false)
  looking.resolve()
  await inspection
  await sandboxes.resume({ ...request, generation: 2 })
  assert.equal(await sandboxes.evict(paused), false)
  await sandboxes.pause('i1', { keepMemory: true, generation: 2 })
  await sandboxes.settle()
  assert.equal(await sandboxes.evict(paused), false)
  assert.equal(sandboxes.paused()[0]?.phase, 'paused')
})

test('a kill of an evicted sandbox removes its record', async () => {
  const { sandboxes, records, paused } = await setUpPaused()
  await sandboxes.evict(paused)
  await sandboxes.kill('i1', { generation: 1 })
  assert.deepEqual([records.size, sandboxes.get('i1')], [0, undefined])
})

/** Starts the node again on these records. Returns the paused ones and the erased cells. */
async function restart(records: readonly CellRecord[]) {
  const erased: string[] = []
  const { paused } = await reclaim(
    {
      records: {
        list: async () => records.map((record) => ({ cellId: record.cellId, record })),
        update: async () => {},
      },
      isAlive: () => false,
      isCurrent: () => true,
      traces: async () => [],
      killStrays: async () => {},
      thaw: async () => {},
      thawClaimed: async () => {},
      halt: async () => {},
      erase: async (cellId) => void erased.push(cellId),
      tidy: async () => {},
      slotNames: async () => [],
      removeSlot: async () => {},
      onError: assert.fail,
    },
    parseSubnet('10.0.0.0/24'),
    'atx-',
  )
  return { paused, erased }
}

test('after a crash during an eviction or a fetch, the files win over the record without files', async () => {
  const { paused } = await setUpPaused()
  const evicted: PausedSandbox = { ...paused, cellId: 'cevicted', phase: 'evicted' }
  assert.deepEqual(await restart([evicted]), { paused: [evicted], erased: [] })
  for (const records of [
    [paused, evicted],
    [evicted, paused],
  ]) {
    assert.deepEqual(await restart(records), { paused: [paused], erased: ['cevicted'] })
  }
  const fetched: PausedSandbox = { ...paused, cellId: 'cnewer', keptGeneration: 5 }
  assert.deepEqual(await restart([evicted, fetched]), { paused: [fetched], erased: ['cevicted'] })
  const newer: PausedSandbox = { ...evicted, keptGeneration: 5 }
  assert.deepEqual(await restart([newer, paused]), { paused: [newer], erased: [paused.cellId] })
})
