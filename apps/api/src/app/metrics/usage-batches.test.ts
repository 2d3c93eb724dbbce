import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { UsageSample } from '../../domain/metrics.ts'
import { createUsageBatches } from './usage-batches.ts'

function sampleOf(sandboxId: string): UsageSample {
  return {
    ...{ sandboxId, at: 0, cpuCount: 2, cpuUsedPercent: 1 },
    ...{ memoryUsedBytes: 1, memoryCacheBytes: 1, memoryTotalBytes: 2 },
    ...{ diskUsedBytes: 1, diskTotalBytes: 2 },
  }
}

function setup({ isAlone = false, refused }: { isAlone?: boolean; refused?: Error } = {}) {
  const writes: string[][] = []
  const write = async (samples: readonly UsageSample[]) => {
    const ids = samples.map(({ sandboxId }) => sandboxId)
    if (refused && ids.includes('refused')) throw refused
    writes.push(ids)
  }
  return { writes, record: createUsageBatches(write, () => isAlone) }
}

test('samples of several nodes are written together, and later ones again', async () => {
  const { writes, record } = setup()
  await Promise.all([record([sampleOf('a'), sampleOf('b')]), record([]), record([sampleOf('c')])])
  await record([sampleOf('d')])
  assert.deepEqual(writes, [['a', 'b', 'c'], ['d']])
})

test('samples of an only node are written at once', async () => {
  const { writes, record } = setup({ isAlone: true })
  await Promise.all([record([sampleOf('a')]), record([sampleOf('b')])])
  assert.deepEqual(writes, [['a'], ['b']])
})

const statuses = (results: readonly PromiseSettledResult<void>[]) =>
  results.map(({ status }) => status)

test('a store that does not answer fails the samples of all nodes, which are taken again', async () => {
  const { writes, record } = setup({
    refused: new Fault('unavailable', 'store_unavailable', 'down'),
  })
  const results = [record([sampleOf('a')]), record([sampleOf('refused')])]
  assert.deepEqual(statuses(await Promise.allSettled(results)), ['rejected', 'rejected'])
  assert.deepEqual(writes, [])
})

test('a sample that the store refuses does not cost the samples of other nodes', async () => {
  const { writes, record } = setup({ refused: new Error('the number is too large') })
  const results = [record([sampleOf('a')]), record([sampleOf('refused')])]
  assert.deepEqual(statuses(await Promise.allSettled(results)), ['fulfilled', 'rejected'])
  assert.deepEqual(writes, [['a']])
})
