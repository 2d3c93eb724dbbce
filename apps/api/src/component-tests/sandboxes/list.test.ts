import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

function idsOf({ json }: Reply): string[] {
  return Object(json).map(({ sandboxID }: { sandboxID: string }) => sandboxID)
}

async function allPages(api: ApiUnderTest, query: string): Promise<string[][]> {
  const pages: string[][] = []
  let token: string | null = ''
  while (token !== null && pages.length < 100) {
    const reply = await api.call('GET', `/v2/sandboxes?${query}${token && `&nextToken=${token}`}`)
    assert.equal(reply.status, 200, reply.text)
    pages.push(idsOf(reply))
    token = reply.headers.get('x-next-token')
  }
  return pages
}

/** Creates twelve sandboxes in groups that started in the same millisecond. */
async function setup() {
  const clock = manualClock()
  const api = await startApiUnderTest({ clock })
  const started: { id: string; second: number }[] = []
  for (const second of [0, 0, 0, 0, 1, 2, 2, 2, 3, 3, 4, 5]) {
    clock.advance(second - (started.at(-1)?.second ?? 0))
    started.push({ id: await api.create({ metadata: { parity: String(second % 2) } }), second })
  }
  const newestFirst = started
    .toSorted((a, b) => b.second - a.second || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id)
  return { api, clock, newestFirst }
}

test('pages show each sandbox once, in order, whatever their size', async () => {
  const { api, newestFirst } = await setup()
  await using _ = api
  for (const limit of [1, 2, 3, 4, 5, 7, 11, 12, 13, 100]) {
    const desc = await allPages(api, `limit=${limit}`)
    assert.deepEqual(desc.flat(), newestFirst)
    assert.equal(desc.length, Math.ceil(newestFirst.length / limit))
    const asc = await allPages(api, `order=asc&limit=${limit}`)
    assert.deepEqual(asc.flat(), newestFirst.toReversed())
  }
})

test('sandboxes that start or end between pages do not move the others', async () => {
  const { api, clock, newestFirst } = await setup()
  await using _ = api
  const first = await api.call('GET', '/v2/sandboxes?limit=4')
  clock.advance(1)
  const late = await api.create()
  for (const id of [newestFirst[3], newestFirst[6]]) {
    assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  }
  const token = first.headers.get('x-next-token')
  const rest = await api.call('GET', `/v2/sandboxes?nextToken=${token}`)
  const expected = newestFirst.slice(4).filter((id) => id !== newestFirst[6])
  assert.deepEqual(idsOf(rest), expected)
  assert.equal(idsOf(await api.call('GET', '/v2/sandboxes'))[0], late)
})

test('ended sandboxes are listed with their reason, only if asked for', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const running = await api.create()
  const killed = await api.create({ metadata: { who: 'me' } })
  const dead = await api.create()
  clock.advance(5)
  assert.equal((await api.call('DELETE', `/sandboxes/${killed}`)).status, 204)
  api.node.end(dead, 'ran out of memory (limit 512 MB)')
  await waitFor(
    'both ends',
    async () => idsOf(await api.call('GET', '/v2/sandboxes?state=ended')).length === 2,
  )
  const { json } = await api.call('GET', '/v2/sandboxes?state=ended')
  const facts = Object(json).map((sandbox: Record<string, unknown>) => [
    sandbox['sandboxID'],
    sandbox['state'],
    sandbox['endReason'],
    typeof sandbox['endedAt'],
  ])
  assert.deepEqual(
    new Map(facts.map(([id, ...rest]: unknown[]) => [id, rest])),
    new Map([
      [killed, ['ended', 'was killed', 'string']],
      [dead, ['ended', 'ran out of memory (limit 512 MB)', 'string']],
    ]),
  )
  assert.deepEqual(idsOf(await api.call('GET', '/v2/sandboxes')), [running])
  assert.deepEqual(idsOf(await api.call('GET', '/sandboxes')), [running])
  const mine = await api.call('GET', '/v2/sandboxes?state=ended&metadata=who%3Dme')
  assert.deepEqual(idsOf(mine), [killed])
  const headers = { 'x-api-key': api.theirs.apiKey }
  assert.deepEqual(idsOf(await api.call('GET', '/v2/sandboxes?state=ended', { headers })), [])
})

test('the total counts the matches of all pages', async () => {
  const { api } = await setup()
  await using _ = api
  for (const [query, total] of [
    ['limit=2', '12'],
    ['limit=2&metadata=parity%3D1', '4'],
    ['state=running', '12'],
    ['state=running,paused', '12'],
    ['state=paused', null],
    ['template=base', '12'],
    ['template=unknown', '0'],
    ['startedAfter=2026-01-01T00:00:03Z', '4'],
  ] as const) {
    const reply = await api.call('GET', `/v2/sandboxes?${query}`)
    assert.deepEqual([reply.status, reply.headers.get('x-total-running')], [200, total], query)
    if (total === null || total === '0') assert.deepEqual(reply.json, [])
  }
})

test('filters: start time inclusive, template by id, and none that is foreign', async () => {
  const { api, newestFirst } = await setup()
  await using _ = api
  const ids = async (query: string) => idsOf(await api.call('GET', `/v2/sandboxes?${query}`))
  assert.deepEqual(await ids('startedAfter=2026-01-01T00:00:04.000Z'), newestFirst.slice(0, 2))
  assert.deepEqual(await ids('startedAfter=2026-01-01T02:00:04%2B02:00'), newestFirst.slice(0, 2))
  assert.deepEqual(await ids('startedAfter=2026-01-01T00:00:04.001Z'), newestFirst.slice(0, 1))
  const one = Object((await api.call('GET', `/sandboxes/${newestFirst[0]}`)).json)
  assert.equal((await ids(`template=${one.templateID}`)).length, 12)
  const filtered = await allPages(api, 'metadata=parity%3D0&limit=3')
  assert.deepEqual([filtered.flat().length, new Set(filtered.flat()).size], [8, 8])
})

test('the metadata filter accepts triple encoding, as clients send it', async () => {
  await using api = await startApiUnderTest()
  const metadata = { k: 'a b', 'key=&%': 'ü+/?', plain: 'x' }
  const id = await api.create({ metadata })
  await api.create({ metadata: { ...metadata, k: 'a  b' } })
  const form = new URLSearchParams(
    Object.entries(metadata).map(([key, value]): [string, string] => [
      encodeURIComponent(key),
      encodeURIComponent(value),
    ]),
  )
  for (const path of ['/sandboxes', '/v2/sandboxes']) {
    const encoded = encodeURIComponent(form.toString())
    assert.deepEqual(idsOf(await api.call('GET', `${path}?metadata=${encoded}`)), [id])
    assert.deepEqual(idsOf(await api.call('GET', `${path}?metadata=k%3Da%252520b`)), [id])
    assert.deepEqual(idsOf(await api.call('GET', `${path}?metadata=k%3Da`)), [])
    assert.deepEqual(idsOf(await api.call('GET', `${path}?metadata=k%3Da%252520b%26plain%3Dy`)), [])
  }
})

test('the list of v1 shows all running ones, newest first, without paging', async () => {
  const { api, newestFirst } = await setup()
  await using _ = api
  const reply = await api.call('GET', '/sandboxes')
  assert.deepEqual(idsOf(reply), newestFirst)
  assert.equal(reply.headers.get('x-next-token'), null)
})
