import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/**
 * Paging during creates and kills: for any order of operations and any page sizes, each sandbox that exists throughout
 * is listed once, none is listed twice, and the order is correct.
 */

const clock = manualClock()
let api: ApiUnderTest
before(async () => void (api = await startApiUnderTest({ clock })))
after(() => api[Symbol.asyncDispose]())

interface Listed {
  readonly sandboxID: string
  readonly startedAt: string
}

for (let seed = 1; seed <= 12; seed += 1) {
  const random = randomFrom(seed)
  const order = random(2) === 0 ? 'desc' : 'asc'

  test(`creates, kills and pages of seed ${seed}, ${order}`, async () => {
    const alive = new Set<string>()
    const create = async () => {
      // Several sandboxes often start in the same millisecond; then the ID decides the order.
      clock.advance([0, 0, 0.001, 1][random(4)] ?? 0)
      alive.add(await api.create(random(2) === 0 ? { metadata: { some: 'pair' } } : {}))
    }
    const kill = async () => {
      const victim = [...alive][random(alive.size)]
      if (victim === undefined) return
      alive.delete(victim)
      assert.equal((await api.call('DELETE', `/sandboxes/${victim}`)).status, 204)
    }
    const disturb = async (most: number) => {
      for (let count = random(most + 1); count > 0; count -= 1) {
        await (random(3) === 0 ? kill() : create())
      }
    }

    for (let listing = 0; listing < 3; listing += 1) {
      await disturb(12)
      const atFirst = new Set(alive)
      const pages: Listed[][] = []
      let token: string | undefined
      do {
        const size = 1 + random(5)
        const { sandboxes, next } = await list({ order, size, token })
        // All pages but the last are full, and contain no sandbox that was killed earlier.
        if (next !== undefined) assert.equal(sandboxes.length, size)
        for (const { sandboxID } of sandboxes) assert.ok(alive.has(sandboxID))
        pages.push(sandboxes)
        token = next
        if (token !== undefined) await disturb(2)
      } while (token !== undefined && pages.length < 200)

      const seen = pages.flat()
      const ids = seen.map(({ sandboxID }) => sandboxID)
      assert.equal(new Set(ids).size, ids.length, 'one is listed twice')
      const allTheTime = atFirst.intersection(alive)
      assert.deepEqual(allTheTime.difference(new Set(ids)), new Set(), 'one is missing')
      assert.deepEqual(seen, inOrder(seen, order))
    }
    while (alive.size > 0) await kill()
    assert.deepEqual((await list({ order, size: 100 })).sandboxes, [])
  })
}

interface Page {
  readonly order: 'asc' | 'desc'
  readonly size: number
  readonly token?: string | undefined
}

async function list({ order, size, token }: Page) {
  const query = new URLSearchParams({ order, limit: String(size) })
  if (token !== undefined) query.set('nextToken', token)
  const reply = await api.call('GET', `/v2/sandboxes?${query.toString()}`)
  assert.equal(reply.status, 200, reply.text)
  const sandboxes: Listed[] = Object(reply.json)
  return { sandboxes, next: reply.headers.get('x-next-token') ?? undefined }
}

/** Sorts by start time, then by ID in the opposite direction. */
function inOrder(listed: readonly Listed[], order: 'asc' | 'desc'): Listed[] {
  const newestFirst = listed.toSorted(
    (a, b) =>
      Date.parse(b.startedAt) - Date.parse(a.startedAt) || (a.sandboxID < b.sandboxID ? -1 : 1),
  )
  return order === 'desc' ? newestFirst : newestFirst.toReversed()
}

/** Deterministic random numbers (Park and Miller). */
function randomFrom(seed: number): (limit: number) => number {
  let state = seed
  for (let skipped = 0; skipped < 10; skipped += 1) state = (state * 48_271) % 2_147_483_647
  return (limit) => {
    state = (state * 48_271) % 2_147_483_647
    return limit === 0 ? 0 : state % limit
  }
}
