import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { createEvictionPasses } from './eviction-passes.ts'
import type { EvictionOutcome } from './eviction-passes.ts'

const { signal } = new AbortController()
const unavailable = new Fault('unavailable', 'objects_unavailable', 'the store is down')

interface Setup {
  readonly limitBytes?: number
  /** Sizes by name; earlier names were used longer ago. */
  readonly files: Readonly<Record<string, number>>
}

function setup({ limitBytes, files }: Setup) {
  const present = new Map(Object.entries(files))
  const outcomes = new Map<string, EvictionOutcome | Error>()
  const state = { nowMs: 1, isLow: false }
  const tried: string[] = []
  const errors: string[] = []
  const evict = (name: string) => async () => {
    tried.push(name)
    const outcome = outcomes.get(name) ?? 'evicted'
    if (outcome instanceof Error) throw outcome
    if (outcome === 'evicted') present.delete(name)
    return outcome
  }
  const passes = createEvictionPasses({
    limitBytes,
    isDiskLow: () => state.isLow,
    findFiles: async () =>
      [...present]
        .map(([name, sizeBytes], index) => ({
          name,
          sizeBytes,
          usedAtMs: index,
          evict: evict(name),
        }))
        .toReversed(),
    nowMs: () => state.nowMs,
    onOutcome: () => {},
    onError: (_error, name) => errors.push(name),
  })
  return {
    ...{ state, outcomes, present, errors },
    /** Runs a pass and returns what it tried. */
    async pass() {
      const isMoreDue = await passes.run(signal)
      return { tried: tried.splice(0), isMoreDue }
    },
  }
}

test('beyond the limit, what was not used for the longest time goes, and no more than needed', async () => {
  const { pass, present } = setup({ limitBytes: 25, files: { a: 10, b: 10, c: 10, d: 10 } })
  assert.deepEqual(await pass(), { tried: ['a', 'b'], isMoreDue: false })
  assert.deepEqual([...present.keys()], ['c', 'd'])
  assert.deepEqual(await pass(), { tried: [], isMoreDue: false })
})

test('without a limit, files go while the disk is low only, a few at a time', async () => {
  const { pass, state } = setup({ files: { a: 1, b: 1, c: 1 } })
  assert.deepEqual((await pass()).tried, [])
  state.isLow = true
  assert.deepEqual(await pass(), { tried: ['a', 'b'], isMoreDue: true })
  state.isLow = false
  assert.deepEqual(await pass(), { tried: [], isMoreDue: false })
})

test('what is in use, missing in the store or fails stays, and the next goes instead', async () => {
  const { pass, outcomes, state, present, errors } = setup({
    limitBytes: 0,
    files: { used: 1, missing: 1, fails: 1, goes: 1 },
  })
  outcomes.set('used', 'used').set('missing', 'missing').set('fails', new Error('damaged'))
  assert.deepEqual((await pass()).tried, ['used', 'missing', 'fails', 'goes'])
  assert.deepEqual([[...present.keys()], errors], [['used', 'missing', 'fails'], ['fails']])
  assert.deepEqual((await pass()).tried, [])
  state.nowMs += 60_000
  assert.deepEqual((await pass()).tried, ['used'])
  state.nowMs += 600_000
  assert.deepEqual((await pass()).tried, ['used', 'missing', 'fails'])
})

test('a pass ends when the store does not answer, and the next one tries the same again', async () => {
  const { pass, outcomes, present } = setup({ limitBytes: 0, files: { a: 1, b: 1 } })
  outcomes.set('a', unavailable)
  assert.deepEqual(await pass(), { tried: ['a'], isMoreDue: false })
  assert.deepEqual((await pass()).tried, ['a'])
  outcomes.clear()
  assert.deepEqual((await pass()).tried, ['a', 'b'])
  assert.equal(present.size, 0)
})

test('the work of one pass is bounded', async () => {
  const files = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`f${index}`, 1]))
  const { pass } = setup({ limitBytes: 0, files })
  const { tried, isMoreDue } = await pass()
  assert.deepEqual([tried.length, isMoreDue], [32, true])
})
