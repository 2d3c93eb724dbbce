import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Team metrics: sampling and API. */

const day = 24 * 3600
const begin = Date.parse('2026-01-01T00:00:00Z') / 1000

/** Returns points as [seconds since `begin`, concurrent sandboxes, starts per second]. */
async function points(api: ApiUnderTest, query = `start=${begin}`) {
  const { status, json } = await api.call('GET', `/teams/${api.ours.teamId}/metrics?${query}`)
  assert.equal(status, 200)
  assert.ok(Array.isArray(json))
  return json.map(({ timestampUnix, concurrentSandboxes, sandboxStartRate }) => [
    timestampUnix - begin,
    concurrentSandboxes,
    sandboxStartRate,
  ])
}

async function waitForPoint(api: ApiUnderTest, offset: number): Promise<void> {
  await waitFor(`a sample at ${offset}`, async () =>
    (await points(api)).some(([at]) => at === offset),
  )
}

test('5 are started, held, 3 killed, then the rest: samples count each of them, and then none', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const ids = await Promise.all(Array.from({ length: 5 }, () => api.create({ timeout: 600 })))
  for (const offset of [5, 10]) {
    clock.advance(5)
    await waitForPoint(api, offset)
  }
  const kill = (id: string) => api.call('DELETE', `/sandboxes/${id}`)
  await Promise.all(ids.slice(0, 3).map(kill))
  clock.advance(5)
  await waitForPoint(api, 15)
  // The sample of this 5-second window is already taken: only the start is added to it, all else shows in the next one.
  const last = await api.create({ timeout: 600 })
  await Promise.all(ids.slice(3).map(kill))
  clock.advance(5)
  await waitForPoint(api, 20)
  await kill(last)
  clock.advance(5)
  await waitForPoint(api, 25)
  const expected = [
    [0, 0, 1],
    [5, 5, 0],
    [10, 5, 0],
    [15, 2, 0.2],
    [20, 1, 0],
    [25, 0, 0],
  ]
  assert.deepEqual(await points(api), expected)
  for (let windows = 0; windows < 2; windows += 1) {
    const { samplings } = api.node
    clock.advance(5)
    await waitFor('the next sampling', () => api.node.samplings > samplings)
  }
  assert.deepEqual(await points(api), expected)
  assert.deepEqual(await points(api, ''), [[0, 5, 6 / 900]])
  const theirs = await api.call('GET', `/teams/${api.theirs.teamId}/metrics`, {
    headers: { 'x-api-key': api.theirs.apiKey },
  })
  assert.deepEqual(theirs.json, [])
})

test('a start that no sample has seen yet is counted after a restart, and only once', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  await Promise.all([1, 2, 3].map(() => api.create({ timeout: 600 })))
  clock.advance(60)
  for (let restarts = 0; restarts < 2; restarts += 1) {
    await api.restart()
    await waitForPoint(api, 60)
    assert.deepEqual(await points(api), [
      [0, 0, 0.6],
      [60, 3, 0],
    ])
  }
})

test('sandboxes that could not be started are no starts', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  api.node.failCreates(Code.Internal)
  await api.call('POST', '/sandboxes', { body: { templateID: 'base' } })
  api.node.failCreates(undefined)
  await api.create({ timeout: 600 })
  clock.advance(5)
  await waitForPoint(api, 5)
  assert.deepEqual(await points(api), [
    [0, 0, 0.2],
    [5, 1, 0],
  ])
})

suite('samples of two weeks', () => {
  let api: ApiUnderTest
  before(async () => {
    const clock = manualClock()
    clock.advance(14 * day)
    api = await startApiUnderTest({ clock })
    const sample = (at: number, concurrent: number, started: number) => ({
      teamId: api.ours.teamId,
      at: begin + at,
      concurrent,
      started,
    })
    await api.withStores(({ teamMetrics }) =>
      teamMetrics.record([
        sample(-91 * day, 50, 50),
        sample(0, 3, 1),
        sample(5, 7, 0),
        sample(25, 4, 2),
        sample(30, 1, 0),
        sample(895, 2, 30),
        sample(900, 6, 0),
        sample(14 * day - 5, 9, 4),
        sample(14 * day, 0, 0),
        { ...sample(14 * day - 5, 100, 100), teamId: api.theirs.teamId },
      ]),
    )
  })
  after(() => api[Symbol.asyncDispose]())

  const between = (start: number, end: number) => `start=${begin + start}&end=${begin + end}`

  for (const [what, query, expected] of [
    [
      'both ends are inclusive',
      between(5, 25),
      [
        [5, 7, 0],
        [25, 4, 0.4],
      ],
    ],
    ['one moment is a range', between(25, 25), [[25, 4, 0.4]]],
    ['nothing in between', between(6, 24), []],
    [
      'the longest range in samples',
      between(0, 3599),
      [
        [0, 3, 0.2],
        [5, 7, 0],
        [25, 4, 0.4],
        [30, 1, 0],
        [895, 2, 6],
        [900, 6, 0],
      ],
    ],
    [
      'steps of 30 seconds',
      between(0, 3600),
      [
        [0, 7, 0.1],
        [30, 1, 0],
        [870, 2, 1],
        [900, 6, 0],
      ],
    ],
    [
      'a step begins before the range does',
      between(5, 3605),
      [
        [0, 7, 2 / 30],
        [30, 1, 0],
        [870, 2, 1],
        [900, 6, 0],
      ],
    ],
    [
      'steps of a minute',
      between(0, 6 * 3600),
      [
        [0, 7, 0.05],
        [840, 2, 0.5],
        [900, 6, 0],
      ],
    ],
    [
      'steps of 2 minutes',
      between(0, 12 * 3600),
      [
        [0, 7, 3 / 120],
        [840, 6, 0.25],
      ],
    ],
    [
      'steps of 5 minutes',
      between(0, day),
      [
        [0, 7, 0.01],
        [600, 2, 0.1],
        [900, 6, 0],
      ],
    ],
    [
      'steps of 15 minutes',
      between(0, 7 * day),
      [
        [0, 7, 33 / 900],
        [900, 6, 0],
      ],
    ],
    [
      'the last 7 days',
      '',
      [
        [14 * day - 900, 9, 4 / 900],
        [14 * day, 0, 0],
      ],
    ],
    [
      'until now',
      `start=${begin + 14 * day - 60}`,
      [
        [14 * day - 5, 9, 0.8],
        [14 * day, 0, 0],
      ],
    ],
    [
      'all of time',
      'start=0',
      [
        [0, 7, 33 / 900],
        [900, 6, 0],
        [14 * day - 900, 9, 4 / 900],
        [14 * day, 0, 0],
      ],
    ],
  ] as const) {
    test(`series: ${what}`, async () => {
      assert.deepEqual(await points(api, query), expected)
    })
  }

  for (const [metric, query, at, value] of [
    ['concurrent_sandboxes', between(0, 1000), 5, 7],
    ['concurrent_sandboxes', between(6, 1000), 900, 6],
    ['concurrent_sandboxes', between(30, 30), 30, 1],
    ['concurrent_sandboxes', '', 14 * day - 5, 9],
    ['sandbox_start_rate', between(0, 1000), 895, 6],
    ['sandbox_start_rate', 'start=0', 895, 6],
    ['sandbox_start_rate', '', 14 * day - 5, 0.8],
    ['sandbox_start_rate', between(6, 24), -begin, 0],
    ['concurrent_sandboxes', between(6, 24), -begin, 0],
  ] as const) {
    test(`the most of ${metric} with ${query || 'no range'} is ${value}`, async () => {
      const path = `/teams/${api.ours.teamId}/metrics/max?metric=${metric}&${query}`
      const { status, json } = await api.call('GET', path)
      const timestamp = new Date((begin + at) * 1000).toISOString()
      assert.deepEqual([status, json], [200, { timestamp, timestampUnix: begin + at, value }])
    })
  }

  test('every point has its time in both forms', async () => {
    const path = `/teams/${api.ours.teamId}/metrics?${between(5, 5)}`
    const [point] = Object((await api.call('GET', path)).json)
    assert.deepEqual(point, {
      timestamp: '2026-01-01T00:00:05.000Z',
      timestampUnix: begin + 5,
      concurrentSandboxes: 7,
      sandboxStartRate: 0,
    })
  })

  for (const [query, message] of [
    ['start=-1', /query\.start: must be an integer of 0 or more/],
    ['end=-1', /query\.end: must be an integer of 0 or more/],
    ['start=1.5', /query\.start/],
    ['start=1e3', /query\.start/],
    ['start=', /query\.start/],
    ['start=now', /query\.start/],
    ['start=%2B1', /query\.start/],
    ['start=1&start=2', /query\.start/],
    ['start=9223372036854775808', /query\.start: must fit into 64 bits/],
    [`start=${'9'.repeat(5000)}`, /query\.start: must fit into 64 bits/],
    ['start=9223372036854775807', /start must not be after the year 2299/],
    ['end=10413792000', /end must not be after the year 2299/],
    ['start=2&end=1', /start must not be after end/],
    [`end=${begin + 7 * day - 1}`, /start must not be after end/],
    [`start=${begin + 14 * day + 1}`, /start must not be after end/],
  ] as const) {
    for (const [path, fixed] of [
      ['metrics', ''],
      ['metrics/max', 'metric=concurrent_sandboxes&'],
    ] as const) {
      test(`${path}?${query.slice(0, 40)} is refused`, async () => {
        const url = `/teams/${api.ours.teamId}/${path}?${fixed}${query}`
        const { status, json } = await api.call('GET', url)
        assert.deepEqual([status, Object(json).code], [400, 400])
        assert.match(Object(json).message, message)
      })
    }
  }

  for (const query of ['', 'metric=', 'metric=cpu', 'metric=concurrent_sandboxes&metric=cpu']) {
    test(`metrics/max?${query} is refused`, async () => {
      const { status, json } = await api.call(
        'GET',
        `/teams/${api.ours.teamId}/metrics/max?${query}`,
      )
      assert.equal(status, 400)
      assert.match(Object(json).message, /query\.metric/)
    })
  }

  const nobody = { headers: {} }
  for (const [what, team, query, options, expected] of [
    ['a stranger before all else', 'x', 'start=-1', nobody, 401],
    ['a malformed number before another team', 'x', 'start=-1', {}, 400],
    ['another team before a range that is none', 'x', 'start=2&end=1', {}, 403],
    ['another team before a time too late', 'x', 'end=10413792000', {}, 403],
    ['a team that does not exist', '00000000-0000-4000-8000-000000000000', '', {}, 403],
    ['a name that is no id', '%20', '', {}, 403],
  ] as const) {
    test(`the order of checks: ${what}`, async () => {
      for (const path of ['metrics?', 'metrics/max?metric=sandbox_start_rate&']) {
        const { status, json } = await api.call('GET', `/teams/${team}/${path}${query}`, options)
        assert.deepEqual([status, Object(json).code], [expected, expected])
      }
    })
  }

  test("another team's metrics are forbidden, and so are ours to them", async () => {
    for (const [teamId, apiKey] of [
      [api.theirs.teamId, api.ours.apiKey],
      [api.ours.teamId, api.theirs.apiKey],
      [api.ours.teamId.toUpperCase(), api.ours.apiKey],
    ] as const) {
      const { status } = await api.call('GET', `/teams/${teamId}/metrics`, {
        headers: { 'x-api-key': apiKey },
      })
      assert.equal(status, 403)
    }
  })
})
