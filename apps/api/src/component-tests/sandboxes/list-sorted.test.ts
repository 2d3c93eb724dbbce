/** Search and order of the list of sandboxes, by columns other than the start time. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

const count = 7

suite('search and order of the list of sandboxes', () => {
  const clock = manualClock()
  let api: ApiUnderTest
  const ids: string[] = []

  before(async () => {
    api = await startApiUnderTest({ clock })
    for (let index = 0; index < count; index += 1) {
      // Random IDs contain letters and digits, so each search has another character too.
      const metadata = { Owner: index < 3 ? 'Ann-Lee' : 'Bob_1', note: index === 5 ? '100%' : 'x' }
      ids.push(await api.create({ metadata, timeout: 1_000 - index }))
    }
  })
  after(() => api[Symbol.asyncDispose]())

  const pick = (...indexes: number[]) => indexes.map((index) => ids[index] ?? '')
  const list = async (query: string) => {
    const reply = await api.call('GET', `/v2/sandboxes?${query}`)
    assert.equal(reply.status, 200, reply.text)
    return reply
  }
  const search = async (text: string) => {
    const reply = await list(`search=${encodeURIComponent(text)}`)
    return { ids: new Set(idsOf(reply)), total: Number(reply.headers.get('x-total-matches')) }
  }
  const allPages = async (query: string, between: () => Promise<unknown> = async () => {}) => {
    const seen: string[] = []
    let token: string | null = ''
    while (token !== null) {
      const reply: Reply = await list(`${query}${token && `&nextToken=${token}`}`)
      seen.push(...idsOf(reply))
      token = reply.headers.get('x-next-token')
      await between()
    }
    return seen
  }
  /** Waits until the store has a sample of each sandbox, then lets their window end. */
  const useMemory = async (bytesOf: (index: number) => number) => {
    for (const [index, id] of ids.entries()) {
      api.node.setUsage(id, { memoryUsedBytes: BigInt(bytesOf(index)) })
    }
    const isSampled = async () => {
      const { json } = await api.call('GET', `/sandboxes/metrics?sandbox_ids=${ids.join(',')}`)
      const samples = Object(json).sandboxes
      return ids.every((id, index) => samples[id]?.memUsed === bytesOf(index))
    }
    await waitFor('samples of all sandboxes', async () => {
      clock.advance(5)
      return isSampled()
    })
    clock.advance(5)
  }

  test('words find ID, template and metadata, in any case, and all must match', async () => {
    assert.deepEqual(await search('owner=ann-'), { ids: new Set(pick(0, 1, 2)), total: 3 })
    assert.deepEqual((await search('BASE bob_')).ids, new Set(pick(3, 4, 5, 6)))
    assert.deepEqual((await search(ids[4]?.slice(1, -1) ?? '')).ids, new Set(pick(4)))
    assert.deepEqual((await search('ann- bob_')).ids, new Set())
  })

  test('characters with a meaning in SQL are only characters', async () => {
    assert.deepEqual((await search('100%')).ids, new Set(pick(5)))
    assert.deepEqual((await search('b_1 %')).ids, new Set(pick(5)))
    for (const text of ['%25', 'o_b', '\\', "'", '" or 1=1 --', 'a\\%']) {
      assert.deepEqual((await search(text)).ids, new Set(), text)
    }
  })

  test('the end time decides the order, on pages of every size', async () => {
    for (const limit of [1, 2, 3, 7, 100]) {
      const ascending = await allPages(`sort=ends&order=asc&limit=${limit}`)
      assert.deepEqual(ascending, pick(6, 5, 4, 3, 2, 1, 0))
      const descending = await allPages(`sort=ends&limit=${limit}`)
      assert.deepEqual(descending, ascending.toReversed())
    }
  })

  test('equal names of templates are ordered by ID, on pages of every size', async () => {
    for (const limit of [1, 2, 100]) {
      assert.deepEqual(await allPages(`sort=template&limit=${limit}`), ids.toSorted())
    }
  })

  test('memory and CPU decide the order, and later samples do not disturb the pages', async () => {
    const [ahead, reversed] = [(index: number) => 100 + index, (index: number) => 900 - index]
    await useMemory(ahead)
    let isDisturbed = false
    const seen = await allPages('sort=memory&limit=3', async () => {
      if (isDisturbed) return
      isDisturbed = true
      await useMemory(reversed)
    })
    assert.deepEqual(seen, pick(6, 5, 4, 3, 2, 1, 0))
    assert.deepEqual(await allPages('sort=memory&limit=3'), ids)
    assert.equal(new Set(await allPages('sort=cpu&limit=2')).size, count)
  })

  test('a paused sandbox has no usage, so it comes last', async () => {
    assert.equal((await api.call('POST', `/sandboxes/${ids[0]}/pause`, { body: {} })).status, 204)
    assert.deepEqual(await allPages('sort=memory&limit=2'), pick(1, 2, 3, 4, 5, 6, 0))
    const reply = await list('sort=memory&state=running&limit=2')
    const { headers } = reply
    assert.deepEqual(
      [headers.get('x-total-matches'), headers.get('x-total-running'), idsOf(reply)],
      ['6', '6', pick(1, 2)],
    )
    assert.equal((await list('limit=2')).headers.get('x-total-matches'), String(count))
  })

  test('by state running sandboxes come first, and newer ones before older ones', async () => {
    clock.advance(1)
    const newest = await api.create({ timeout: 1_000 })
    const running = [newest, ...pick(1, 2, 3, 4, 5, 6).toSorted()]
    for (const limit of [1, 2, 3, 100]) {
      const found = await allPages(`sort=state&limit=${limit}`)
      assert.deepEqual(found, [...running, ...pick(0)])
      assert.deepEqual(await allPages(`sort=state&order=asc&limit=${limit}`), found.toReversed())
    }
    const ended = await api.create()
    assert.equal((await api.call('DELETE', `/sandboxes/${ended}`)).status, 204)
    const all = await allPages('sort=state&state=running,paused,ended&limit=2')
    assert.deepEqual(all, [...running, ...pick(0), ended])
  })

  test('bad parameters are refused', async () => {
    const token = (await list('sort=memory&limit=2')).headers.get('x-next-token')
    for (const query of [
      'sort=nonsense',
      `search=${'a'.repeat(201)}`,
      `search=${'a+'.repeat(11)}`,
      'search=%00',
      `sort=cpu&nextToken=${token}`,
      `sort=state&nextToken=${token}`,
      `nextToken=${token}`,
    ]) {
      assert.equal((await api.call('GET', `/v2/sandboxes?${query}`)).status, 400, query)
    }
  })
})

function idsOf({ json }: Reply): string[] {
  return Object(json).map(({ sandboxID }: { sandboxID: string }) => sandboxID)
}
