import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { createUploadPasses } from './upload-passes.ts'

const unavailable = new Fault('unavailable', 'objects_unavailable', 'the store refuses')
const { signal } = new AbortController()

function setup(names: readonly string[]) {
  const state = { nowMs: 0, isWorking: true, waiting: new Set(names), refused: new Set<string>() }
  const tried: string[] = []
  const upload = (name: string) => ({
    name,
    async run() {
      tried.push(name)
      if (!state.isWorking || state.refused.has(name)) throw unavailable
      state.waiting.delete(name)
    },
  })
  const passes = createUploadPasses({
    chores: () => [],
    findUploads: async () => [...state.waiting].map(upload),
    isStoreWorking: async () => state.isWorking,
    nowMs: () => state.nowMs,
    onError: () => {},
  })
  return {
    state,
    /** Runs a pass and returns what it tried. */
    async pass(afterMs = 0) {
      state.nowMs += afterMs
      const isDone = await passes.run(signal)
      return { tried: tried.splice(0), isDone }
    },
  }
}

test('uploads that the store refuses for ever keep no other from it', async () => {
  const { state, pass } = setup(['a', 'b', 'c', 'd', 'e'])
  state.refused = new Set(['a', 'b', 'c', 'd'])
  assert.deepEqual(await pass(), { tried: ['a', 'b', 'c', 'd', 'e'], isDone: false })
  state.waiting.add('new')
  assert.deepEqual(await pass(10_000), { tried: ['new', 'a', 'b', 'c', 'd'], isDone: false })
})

test('a refused upload is tried with growing delays, and last', async () => {
  const { state, pass } = setup(['a', 'b'])
  state.refused = new Set(['a', 'b'])
  await pass()
  assert.deepEqual((await pass(9_999)).tried, [])
  assert.deepEqual((await pass(1)).tried, ['a', 'b'])
  assert.deepEqual((await pass(19_999)).tried, [])
  state.refused.add('c')
  state.waiting.add('c')
  assert.deepEqual((await pass(1)).tried, ['c', 'a', 'b'])
  for (let round = 0; round < 20; round += 1) await pass(24 * 60 * 60 * 1000)
  assert.deepEqual((await pass(15 * 60_000 - 1)).tried, [])
  assert.deepEqual((await pass(1)).tried.toSorted(), ['a', 'b', 'c'])
  state.refused.clear()
  assert.equal((await pass(15 * 60_000)).isDone, true)
})

test('an outage ends the pass, and afterwards nothing waits longer for it', async () => {
  const { state, pass } = setup(['a', 'b', 'c'])
  state.isWorking = false
  for (let round = 0; round < 10; round += 1) {
    assert.deepEqual(await pass(10_000), { tried: ['a'], isDone: false })
  }
  state.isWorking = true
  assert.deepEqual(await pass(), { tried: ['a', 'b', 'c'], isDone: true })
})

test('a failure of the node itself is no outage', async () => {
  const tried: string[] = []
  const fail = (name: string) => ({
    name,
    async run() {
      tried.push(name)
      throw new Error('no such file')
    },
  })
  const passes = createUploadPasses({
    chores: () => [fail('chore')],
    findUploads: async () => [fail('a'), fail('b')],
    isStoreWorking: () => assert.fail('not asked'),
    nowMs: () => 0,
    onError: () => {},
  })
  assert.equal(await passes.run(signal), false)
  assert.deepEqual(tried, ['chore', 'a', 'b'])
})
