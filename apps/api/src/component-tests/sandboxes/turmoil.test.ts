import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'
import type { Operation } from '@atoll/simulated-node/failure-injector'

/**
 * Random concurrent operations on a few sandboxes, with node failures and server restarts: afterwards records and node
 * agree, nothing is left over, and no limit was exceeded.
 */

const limit = 6
const rounds = 25
const operations: readonly Operation[] = [
  'create',
  'pause',
  'resume',
  'snapshot',
  'deleteSnapshot',
  'kill',
]
const codes = [Code.Internal, Code.Unavailable, Code.ResourceExhausted]

/** Deterministic random numbers; a failure message contains the seed. */
function createRandom(seed: number) {
  let state = seed
  const next = () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
  const pick = <T>(items: readonly T[]): T => {
    const item = items[Math.floor(next() * items.length)]
    return item ?? assert.fail('nothing to pick from')
  }
  return { next, pick }
}

type Random = ReturnType<typeof createRandom>

async function oneRound(api: ApiUnderTest, random: Random, ids: string[]): Promise<Reply[]> {
  const failing = random.pick(operations)
  if (random.next() < 0.5) {
    api.node.fail(failing, random.pick(codes), random.next() < 0.5 ? 'after' : undefined)
  }
  const acts = Array.from({ length: 8 }, () => act(api, random, ids))
  const stops = random.next() < 0.15
  if (stops) await api.restart()
  const replies = await Promise.allSettled(acts)
  api.node.fail(failing, undefined)
  return replies.flatMap((reply) => (reply.status === 'fulfilled' ? reply.value : []))
}

async function act(api: ApiUnderTest, random: Random, ids: string[]): Promise<Reply> {
  const id = ids.length > 0 ? random.pick(ids) : 'iunknown'
  const post = (path: string, body: object) =>
    api.call('POST', `/sandboxes/${id}/${path}`, { body })
  switch (random.pick(['create', 'pause', 'pause', 'connect', 'connect', 'copy', 'fork', 'kill'])) {
    case 'create':
      return keep(ids, await api.call('POST', '/v2/sandboxes', { body: { templateID: 'base' } }))
    case 'pause':
      return post('pause', { memory: random.next() < 0.7 })
    case 'connect':
      return post('connect', { timeout: 300, memory: random.next() < 0.8 })
    case 'copy':
      return post('snapshots', random.next() < 0.5 ? {} : { name: random.pick(['a', 'b:v1']) })
    case 'fork':
      return keep(ids, await post('fork', { count: 2, timeout: 300 }))
    default:
      return api.call('DELETE', `/sandboxes/${id}`)
  }
}

function keep(ids: string[], reply: Reply): Reply {
  for (const one of [Object(reply.json)].flat()) {
    const made = one.sandboxID ?? one.sandbox?.sandboxID
    if (made !== undefined) ids.push(made)
  }
  return reply
}

async function shown(api: ApiUnderTest): Promise<Map<string, string>> {
  const { json } = await api.call('GET', '/v2/sandboxes')
  const rows: { sandboxID: string; state: string }[] = Object(json)
  return new Map(rows.map(({ sandboxID, state }) => [sandboxID, state]))
}

function onNode({ node }: ApiUnderTest): Map<string, string> {
  const running = [...node.running.keys()].map((id) => [id, 'running'] as const)
  return new Map([...running, ...[...node.paused.keys()].map((id) => [id, 'paused'] as const)])
}

function sorted(states: Map<string, string>): [string, string][] {
  return [...states].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

for (const seed of [1, Date.now() % 1_000_000]) {
  test(`records and node agree after turmoil (seed ${seed})`, async () => {
    const env = { ATOLL_TEAM_CONCURRENT_SANDBOXES: String(limit) }
    await using api = await startApiUnderTest({ env })
    const random = createRandom(seed)
    const ids: string[] = []
    const statuses = new Set<number>()
    for (let round = 0; round < rounds; round += 1) {
      for (const { status } of await oneRound(api, random, ids)) statuses.add(status)
      const running = [...(await shown(api)).values()].filter((state) => state === 'running')
      assert.ok(running.length <= limit, `${running.length} run, seed ${seed}`)
    }
    for (const expected of [201, 204, 404, 409]) {
      assert.ok(statuses.has(expected), `${expected} never happened, seed ${seed}`)
    }
    await api.restart()
    await waitFor(`agreement, seed ${seed}`, async () => {
      const [records, node] = [sorted(await shown(api)), sorted(onNode(api))]
      return JSON.stringify(records) === JSON.stringify(node)
    })
    await waitFor(
      `copies that belong to a sandbox or snapshot, seed ${seed}`,
      async () => {
        const listed = Object((await api.call('GET', '/snapshots')).json)
        return listed.length === api.node.snapshots.size
      },
      { timeoutMs: 20_000 },
    )
    // All remaining sandboxes and snapshots are usable.
    const states = await shown(api)
    for (const [id, state] of states) {
      if (state === 'running') await api.call('DELETE', `/sandboxes/${id}`)
    }
    for (const [id, state] of states) {
      if (state !== 'paused') continue
      const body = { timeout: 60 }
      const { status, text } = await api.call('POST', `/sandboxes/${id}/connect`, { body })
      assert.equal(status, 201, `${text}, seed ${seed}`)
      assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
    }
    for (;;) {
      const [snapshot] = Object((await api.call('GET', '/snapshots')).json)
      if (!snapshot) break
      const made = await api.create({ templateID: snapshot.snapshotID })
      await api.call('DELETE', `/sandboxes/${made}`)
      const path = `/templates/${encodeURIComponent(snapshot.snapshotID)}`
      assert.equal((await api.call('DELETE', path)).status, 204, `seed ${seed}`)
    }
    assert.deepEqual(
      [api.node.running.size, api.node.paused.size, api.node.snapshots.size],
      [0, 0, 0],
      `seed ${seed}`,
    )
  })
}
