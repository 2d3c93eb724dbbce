import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Sandbox metrics: sampling and API. */

const begin = Date.parse('2026-01-01T00:00:00Z') / 1000
const day = 24 * 3600
const second = 1_000_000_000n
const mebibyte = 1024 * 1024

async function metricsOf(api: ApiUnderTest, id: string, query = '') {
  const { status, json } = await api.call('GET', `/sandboxes/${id}/metrics?${query}`)
  assert.equal(status, 200)
  assert.ok(Array.isArray(json))
  return json
}

async function waitForSamples(api: ApiUnderTest, id: string, count: number): Promise<void> {
  await waitFor(`${count} samples`, async () => (await metricsOf(api, id)).length === count)
}

test('samples have CPU, memory and disk, from the first reading on', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 600 })
  const memory = { memoryUsedBytes: 5_000n, memoryCacheBytes: 600n, diskUsedBytes: 70_000n }
  api.node.setUsage(id, {
    ...memory,
    ageNs: 4n * second,
    readAtNs: 100n * second,
    cpuUsedNs: second,
  })
  clock.advance(5)
  await waitForSamples(api, id, 1)
  api.node.setUsage(id, { ageNs: 9n * second, readAtNs: 105n * second, cpuUsedNs: 6n * second })
  clock.advance(5)
  await waitForSamples(api, id, 2)
  const fixed = {
    cpuCount: 2,
    memUsed: 5_000,
    memTotal: 1024 * mebibyte,
    memCache: 600,
    diskUsed: 70_000,
    diskTotal: 4096 * mebibyte,
  }
  assert.deepEqual(await metricsOf(api, id), [
    { timestamp: '2026-01-01T00:00:05.000Z', timestampUnix: begin + 5, cpuUsedPct: 12.5, ...fixed },
    { timestamp: '2026-01-01T00:00:10.000Z', timestampUnix: begin + 10, cpuUsedPct: 50, ...fixed },
  ])
})

test('after a restart the CPU use of an older sandbox is known from its second reading on', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 600 })
  api.node.setUsage(id, { ageNs: 60n * second, readAtNs: 100n * second, cpuUsedNs: 30n * second })
  clock.advance(5)
  const { samplings } = api.node
  await api.restart()
  await waitFor('the first reading', () => api.node.samplings > samplings)
  api.node.setUsage(id, { ageNs: 65n * second, readAtNs: 105n * second, cpuUsedNs: 31n * second })
  clock.advance(5)
  await waitForSamples(api, id, 1)
  const [{ timestampUnix, cpuUsedPct }] = Object(await metricsOf(api, id))
  assert.deepEqual([timestampUnix, cpuUsedPct], [begin + 10, 10])
})

test('an unreachable node does not stop the sampling of teams, and samples continue when it is back', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create({ timeout: 600 })
  api.node.failAll(Code.Unavailable)
  clock.advance(5)
  await waitFor('a sample of the team', async () => {
    const path = `/teams/${api.ours.teamId}/metrics?start=${begin + 5}`
    return Object((await api.call('GET', path)).json).length === 1
  })
  assert.deepEqual(await metricsOf(api, id), [])
  api.node.failAll(undefined)
  await waitForSamples(api, id, 1)
})

suite('samples of a sandbox that has ended', () => {
  let api: ApiUnderTest
  let id: string
  let other: string
  let silent: string

  before(async () => {
    const clock = manualClock()
    clock.advance(8 * day)
    api = await startApiUnderTest({ clock })
    id = await api.create()
    other = await api.create()
    silent = await api.create()
    for (const each of [id, other, silent]) await api.call('DELETE', `/sandboxes/${each}`)
    const sample = (at: number, size: number, sandboxId = id) => ({
      sandboxId,
      at: begin + at,
      cpuCount: 2,
      cpuUsedPercent: size + 0.25,
      memoryUsedBytes: 100 - size,
      memoryCacheBytes: 2 ** 40 + size,
      memoryTotalBytes: 2 ** 41,
      diskUsedBytes: size,
      diskTotalBytes: 2 ** 42,
    })
    await api.withStores(({ usage }) =>
      usage.record([
        sample(day - 5, 99),
        sample(2 * day, 10),
        sample(2 * day + 5, 30),
        sample(2 * day + 25, 20),
        sample(2 * day + 3600, 40),
        sample(3 * day, 50, other),
      ]),
    )
    await waitFor('the deletion of the oldest', async () => (await metricsOf(api, id)).length === 2)
  })
  after(() => api[Symbol.asyncDispose]())

  const times = (samples: readonly { timestampUnix: number; diskUsed: number }[]) =>
    samples.map(({ timestampUnix, diskUsed }) => [timestampUnix - begin - 2 * day, diskUsed])
  const at = (offset: number) => begin + 2 * day + offset

  test('samples older than 7 days are deleted', async () => {
    assert.deepEqual(times(await metricsOf(api, id, `start=${begin}`)), [
      [0, 30],
      [3600, 40],
    ])
  })

  for (const [what, query, expected] of [
    [
      'from the first to the last sample',
      () => '',
      [
        [0, 30],
        [3600, 40],
      ],
    ],
    [
      'the start alone',
      () => `start=${at(5)}`,
      [
        [5, 30],
        [25, 20],
        [3600, 40],
      ],
    ],
    [
      'the end alone',
      () => `end=${at(25)}`,
      [
        [0, 10],
        [5, 30],
        [25, 20],
      ],
    ],
    [
      'both, inclusive',
      () => `start=${at(5)}&end=${at(25)}`,
      [
        [5, 30],
        [25, 20],
      ],
    ],
    ['one moment', () => `start=${at(5)}&end=${at(5)}`, [[5, 30]]],
    ['nothing in between', () => `start=${at(6)}&end=${at(24)}`, []],
    [
      'long steps',
      () => `start=0&end=${at(day)}`,
      [
        [0, 30],
        [3600, 40],
      ],
    ],
  ] as const) {
    test(`series: ${what}`, async () => {
      assert.deepEqual(times(await metricsOf(api, id, query())), expected)
    })
  }

  test('a step has the largest value of each column', async () => {
    const [step] = await metricsOf(api, id, `start=${at(0)}&end=${at(3600)}`)
    assert.deepEqual(step, {
      timestamp: '2026-01-03T00:00:00.000Z',
      timestampUnix: at(0),
      cpuCount: 2,
      cpuUsedPct: 30.25,
      memUsed: 90,
      memTotal: 2 ** 41,
      memCache: 2 ** 40 + 30,
      diskUsed: 30,
      diskTotal: 2 ** 42,
    })
  })

  test('the batch has the newest sample of each sandbox, and omits sandboxes without samples', async () => {
    const path = `/sandboxes/metrics?sandbox_ids=${id},${other},${silent},iunknown`
    const { status, json } = await api.call('GET', path)
    const { sandboxes } = Object(json)
    assert.equal(status, 200)
    assert.deepEqual(
      [Object.keys(sandboxes).length, sandboxes[id].diskUsed, sandboxes[other].diskUsed],
      [2, 40, 50],
    )
  })

  test('a sandbox that is unknown, has no samples or is of another team has none', async () => {
    assert.deepEqual(await metricsOf(api, 'iunknown'), [])
    assert.deepEqual(await metricsOf(api, silent, `start=${at(99)}`), [])
    const theirs = { headers: { 'x-api-key': api.theirs.apiKey } }
    assert.deepEqual((await api.call('GET', `/sandboxes/${id}/metrics`, theirs)).json, [])
    const batch = await api.call('GET', `/sandboxes/metrics?sandbox_ids=${id}`, theirs)
    assert.deepEqual(batch.json, { sandboxes: {} })
  })

  for (const [path, message] of [
    ['ID/metrics?start=-1', /query\.start/],
    ['ID/metrics?end=1.5', /query\.end/],
    ['ID/metrics?end=', /query\.end/],
    ['ID/metrics?start=9223372036854775808', /query\.start: must fit/],
    ['ID/metrics?start=10413792000', /start must not be after the year 2299/],
    ['ID/metrics?start=2&end=1', /start must not be after end/],
    ['iunknown/metrics?start=2&end=1', /start must not be after end/],
    [`ID/metrics?end=${begin}`, /start must not be after end/],
    ['I_1/metrics', /Invalid sandbox ID/],
    ['metrics', /query\.sandbox_ids: is required/],
    ['metrics?sandbox_ids=', /query\.sandbox_ids/],
    ['metrics?sandbox_ids=a,,b', /query\.sandbox_ids/],
    ['metrics?sandbox_ids=A', /query\.sandbox_ids.*Invalid sandbox ID/],
    ['metrics?sandbox_ids=a,b,a', /query\.sandbox_ids: must name each sandbox once/],
    ['metrics?sandbox_ids=a&sandbox_ids=b', /query\.sandbox_ids/],
    [
      `metrics?sandbox_ids=${Array.from({ length: 101 }, (_, i) => `i${i}`).join()}`,
      /query\.sandbox_ids: must name at most 100/,
    ],
  ] as const) {
    test(`GET /sandboxes/${path.slice(0, 60)} is refused`, async () => {
      const { status, json } = await api.call('GET', `/sandboxes/${path.replace('ID', id)}`)
      assert.deepEqual([status, Object(json).code], [400, 400])
      assert.match(Object(json).message, message)
    })
  }

  test('100 ids are asked for at once', async () => {
    const ids = [id, ...Array.from({ length: 99 }, (_, i) => `i${i}`)]
    const { json } = await api.call('GET', `/sandboxes/metrics?sandbox_ids=${ids.join()}`)
    assert.deepEqual(Object.keys(Object(json).sandboxes), [id])
  })
})
