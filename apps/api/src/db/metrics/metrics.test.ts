import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFirstTeam } from '../../app/bootstrap.ts'
import type { FirstCredentials } from '../../app/bootstrap.ts'
import { makeStore, unsavedKeys } from '../../sim/store.ts'
import { openStores } from '../stores.ts'

const all = { start: 0, end: 1_000_000 }

async function setup() {
  const store = await makeStore()
  const stores = await openStores(store.location, unsavedKeys())
  const made: FirstCredentials[] = []
  const clock = { now: () => new Date(0) }
  await createFirstTeam({ teams: stores.teams, clock }, async (first) => void made.push(first))
  const teamId = made[0]?.teamId ?? assert.fail('there is no team')
  return {
    stores,
    teamId,
    async [Symbol.asyncDispose]() {
      await stores.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

test('of several samples for one moment the largest values are kept, also when written concurrently', async () => {
  await using world = await setup()
  const { teamMetrics } = world.stores
  const sample = (at: number, concurrent: number, started: number) => ({
    teamId: world.teamId,
    at,
    concurrent,
    started,
  })
  await teamMetrics.record([sample(5, 3, 0)])
  await Promise.all([
    teamMetrics.record([sample(5, 1, 4), sample(10, 1, 0)]),
    teamMetrics.record([sample(10, 0, 2), sample(5, 2, 1)]),
  ])
  const steps = await teamMetrics.series(world.teamId, all, 5)
  assert.deepEqual(
    steps.map(({ at, concurrent, started }) => [at, concurrent, started]),
    [
      [5, 3, 4],
      [10, 1, 2],
    ],
  )
})

test('old samples are deleted 5 minutes at a time, until none is left of them', async () => {
  await using world = await setup()
  const { teamMetrics, usage } = world.stores
  const fixed = {
    sandboxId: 'i1',
    cpuCount: 1,
    cpuUsedPercent: 0,
    memoryUsedBytes: 0,
    memoryCacheBytes: 0,
    memoryTotalBytes: 0,
    diskUsedBytes: 0,
    diskTotalBytes: 0,
  }
  const times = [0, 295, 300, 899, 900, 905]
  const { teamId } = world
  await teamMetrics.record(times.map((at) => ({ teamId, at, concurrent: 1, started: 0 })))
  await usage.record(times.map((at) => ({ ...fixed, at })))
  for (const [isMore, left] of [
    [true, [300, 899, 900, 905]],
    [true, [899, 900, 905]],
    [false, [900, 905]],
    [false, [900, 905]],
  ] as const) {
    assert.equal(await teamMetrics.deleteBefore(900), isMore)
    assert.equal(await usage.deleteBefore(900), isMore)
    // Steps of one second return the samples themselves.
    const ofTeam = await teamMetrics.series(teamId, all, 1)
    const ofSandbox = await usage.series('i1', all, 1)
    assert.deepEqual([ofTeam.map(({ at }) => at), ofSandbox.map(({ at }) => at)], [left, left])
  }
})

test('a batch of more samples than one statement holds is written whole', async () => {
  await using world = await setup()
  const { teamMetrics } = world.stores
  const { teamId } = world
  const samples = Array.from({ length: 1201 }, (_, i) => ({
    teamId,
    at: i * 5,
    concurrent: 1,
    started: 1,
  }))
  await teamMetrics.record(samples)
  assert.equal((await teamMetrics.series(teamId, all, 5)).length, 1201)
  assert.equal(await teamMetrics.lastSampleAt(), 6000)
  assert.deepEqual(await teamMetrics.listActive(6000), [teamId])
})

test('samples of a sandbox are written whole and keep their values, and an existing sample stays', async () => {
  await using world = await setup()
  const { usage } = world.stores
  const sampleAt = (at: number, cpuUsedPercent: number) => ({
    ...{ sandboxId: 'i1', at, cpuCount: 2, cpuUsedPercent },
    ...{ memoryUsedBytes: 2 ** 40, memoryCacheBytes: 3, memoryTotalBytes: 2 ** 41 },
    ...{ diskUsedBytes: 4, diskTotalBytes: 2 ** 50 },
  })
  await usage.record([sampleAt(5, 12.75)])
  await usage.record(Array.from({ length: 1201 }, (_, i) => sampleAt(i * 5, 99)))
  const series = await usage.series('i1', all, 5)
  assert.equal(series.length, 1201)
  const { sandboxId: _, ...expected } = sampleAt(5, 12.75)
  assert.deepEqual(series[1], expected)
})

test('a delete of many samples ends with a moment, so that it stays short', async () => {
  await using world = await setup()
  const { usage } = world.stores
  const sampleAt = (at: number, sandboxId: string) => ({
    ...{ sandboxId, at, cpuCount: 1, cpuUsedPercent: 0, memoryUsedBytes: 0, memoryCacheBytes: 0 },
    ...{ memoryTotalBytes: 0, diskUsedBytes: 0, diskTotalBytes: 0 },
  })
  const ids = Array.from({ length: 6_000 }, (_, i) => `i${i}`)
  await usage.record([0, 5].flatMap((at) => ids.map((id) => sampleAt(at, id))))
  const left = async () => (await usage.series('i1', all, 1)).map(({ at }) => at)
  assert.equal(await usage.deleteBefore(900), true)
  assert.deepEqual(await left(), [5])
  assert.equal(await usage.deleteBefore(900), true)
  assert.deepEqual(await left(), [])
  assert.equal(await usage.deleteBefore(900), false)
})
