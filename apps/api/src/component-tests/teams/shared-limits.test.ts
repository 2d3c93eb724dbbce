/** Rate limits that several apis on one store share. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { createRateLimiter } from '../../app/teams/rate-limits.ts'
import type { RateLimiter } from '../../app/teams/rate-limits.ts'
import { openDatabase, openStores } from '../../db/stores.ts'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { makeStore, onPostgres, unsavedKeys } from '../../sim/store.ts'

const limit = { requests: 20, seconds: 10 }
/** An api grants at most so many of 20 requests before the store counts them. */
const freeRequests = 2

/** Two limiters on one store, as two apis have them. The options may change later. */
async function setUp(options: { apis?: number; isDown?: boolean } = {}) {
  const place = await makeStore()
  let statements = 0
  let added = 0
  const stores = await openStores(place.location, unsavedKeys(), () => (statements += 1))
  statements = 0
  const clock = manualClock()
  const store: typeof stores.rates = {
    ...stores.rates,
    async add(...counts) {
      if (options.isDown) throw new Error('simulated')
      const windows = await stores.rates.add(...counts)
      for (const { requests } of counts[0]) added += requests
      return windows
    },
  }
  const ports = { store, countApis: () => options.apis ?? 2, clock, log: silentLogger }
  const create = () => createRateLimiter(new Map([['*', limit]]), ports)
  return {
    ...{ first: create(), second: create(), clock, rates: stores.rates },
    statements: () => statements,
    /** Requests that the store has counted. */
    added: () => added,
    async [Symbol.asyncDispose]() {
      await stores.close()
      await place[Symbol.asyncDispose]()
    },
  }
}

async function isGranted(limiter: RateLimiter): Promise<boolean> {
  const state = await limiter.take('team', 'sandbox.list')
  return state !== undefined && state.remaining >= 0
}

const count = (outcomes: readonly boolean[]) => outcomes.filter(Boolean).length

const takeAtOnce = async (limiters: readonly RateLimiter[]) =>
  count(await Promise.all(limiters.map(isGranted)))

async function takeInTurn(limiters: readonly RateLimiter[]): Promise<number> {
  const outcomes: boolean[] = []
  for (const limiter of limiters) outcomes.push(await isGranted(limiter))
  return count(outcomes)
}

for (const [how, take] of [
  ['at once', takeAtOnce],
  ['one after the other', takeInTurn],
] as const) {
  test(`requests ${how} that alternate between two apis get the limit of one`, async () => {
    await using started = await setUp()
    const { first, second } = started
    const granted = await take(Array.from({ length: 25 }, () => [first, second]).flat())
    assert.ok(
      granted >= limit.requests && granted <= limit.requests + freeRequests,
      String(granted),
    )
  })

  test(`requests ${how} that all reach one of two apis get the whole limit`, async () => {
    await using started = await setUp()
    const granted = await take(Array.from({ length: 30 }, () => started.first))
    assert.equal(granted, limit.requests)
  })

  test(`requests ${how} that move from one api to another get the limit once`, async () => {
    await using started = await setUp()
    const { first, second } = started
    const before = await take(Array.from({ length: 12 }, () => first))
    assert.equal(before, 12)
    const granted = before + (await take(Array.from({ length: 20 }, () => second)))
    assert.ok(
      granted >= limit.requests && granted <= limit.requests + freeRequests,
      String(granted),
    )
  })
}

test('a new window begins on all apis at the same time', async () => {
  await using started = await setUp()
  const { first, second, clock } = started
  await takeAtOnce(Array.from({ length: 30 }, () => first))
  clock.advance(4)
  assert.ok((await takeInTurn(Array.from({ length: 10 }, () => second))) <= freeRequests)
  const state = await second.take('team', 'sandbox.list')
  assert.deepEqual(state, { limit: 20, remaining: -1, resetSeconds: 6 })
  clock.advance(6)
  assert.equal(await takeInTurn(Array.from({ length: 25 }, () => second)), limit.requests)
  assert.ok((await takeInTurn([first, first, first, first])) <= freeRequests)
})

test('teams and operations have limits of their own', async () => {
  await using started = await setUp()
  const { first, second } = started
  await takeAtOnce(Array.from({ length: 30 }, () => first))
  for (const [team, operation] of [
    ['other', 'sandbox.list'],
    ['team', 'sandbox.create'],
  ] as const) {
    assert.ok(Number((await second.take(team, operation))?.remaining) > 0)
  }
})

test('an only api, and a first request, send no statement', async () => {
  await using alone = await setUp({ apis: 1 })
  assert.equal(await takeAtOnce(Array.from({ length: 30 }, () => alone.first)), limit.requests)
  assert.equal(alone.statements(), 0)
  await using started = await setUp()
  const granted = isGranted(started.first)
  // The statement that counts the request for the other api begins after the answer.
  assert.equal(started.statements(), 0)
  assert.equal(await granted, true)
})

test('an api that becomes one of two counts what it has granted alone', async () => {
  const options = { apis: 1 }
  await using started = await setUp(options)
  const { first, second, added } = started
  await takeAtOnce(Array.from({ length: 15 }, () => first))
  options.apis = 2
  first.share()
  await waitFor('the count in the store', () => added() === 15)
  assert.equal(await takeAtOnce(Array.from({ length: 20 }, () => second)), limit.requests - 15)
  options.apis = 1
  assert.equal(await takeInTurn(Array.from({ length: 10 }, () => second)), 0)
})

test('a request that the store does not count is not granted, and the count is not lost', async () => {
  const options = { isDown: true }
  await using started = await setUp(options)
  const requests = Array.from({ length: 10 }, () => isGranted(started.first))
  const outcomes = await Promise.allSettled(requests)
  const granted = outcomes.filter(({ status }) => status === 'fulfilled').length
  assert.equal(granted, freeRequests)
  options.isDown = false
  const later = await takeAtOnce(Array.from({ length: 30 }, () => started.first))
  assert.equal(granted + later, limit.requests)
})

test('windows that have ended are deleted', async () => {
  await using started = await setUp()
  const { first, clock, rates } = started
  await takeAtOnce(Array.from({ length: 5 }, () => first))
  const then = clock.now()
  clock.advance(3600)
  await first.take('team', 'template.list')
  await waitFor('the deletion', async () => {
    // Adds nothing to a window that exists, and begins an empty one if there is none.
    const key = { teamId: 'team', operationId: 'sandbox.list' }
    const [window] = await rates.add([{ ...key, requests: 0, seconds: 10, endsAt: then }], then)
    return window?.requests === 0
  })
})

const rateLimits = 'sandbox.list=20/1000,template.list=2/1'

const list = async (api: ApiUnderTest) => (await api.call('GET', '/sandboxes')).status

test('two api processes grant one limit together', onPostgres, async () => {
  const env = { ATOLL_RATE_LIMITS: rateLimits }
  await using first = await startApiUnderTest({ env })
  await using second = await startApiUnderTest({ env, beside: first })
  const { db, close } = openDatabase(first.store.location)
  await waitFor('the first to know of the second', async () => {
    // An api counts in the store once it knows of another one.
    await first.call('GET', '/templates')
    return (await db.selectFrom('rate_windows').selectAll().execute()).length > 0
  })
  await close()
  const requests = Array.from({ length: 25 }, () => [list(first), list(second)])
  const statuses = await Promise.all(requests.flat())
  const granted = statuses.filter((status) => status === 200).length
  assert.ok(granted >= limit.requests && granted <= limit.requests + freeRequests, String(granted))
  assert.deepEqual([await list(first), await list(second)], [429, 429])
})
