/** Paused sandboxes whose node has evicted their files: they stay paused, and a resume fetches the files. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { lose, setUpMoves as setUp } from '../sim/moves.ts'

/** A sandbox that was paused and evicted, which the database knows to be uploaded. */
async function setUpEvicted() {
  const fleet = await setUp()
  await fleet.pause()
  await fleet.waitUntilDurable()
  fleet.first.evict(fleet.id)
  return fleet
}

/** Waits for a pass over the nodes, which a restart of the api begins with. */
async function reconcile({ api }: Awaited<ReturnType<typeof setUp>>): Promise<void> {
  await api.restart()
}

async function statesOf({ api }: Awaited<ReturnType<typeof setUp>>): Promise<unknown[]> {
  const { json } = await api.call('GET', '/v2/sandboxes?state=paused')
  assert.ok(Array.isArray(json))
  return json.map((one: unknown) => [Object(one).sandboxID, Object(one).state])
}

test('an evicted sandbox stays paused and listed, and is fetched by its node when it is resumed', async () => {
  await using fleet = await setUpEvicted()
  const { first, second, id } = fleet
  await reconcile(fleet)
  assert.equal((await fleet.record())?.state, 'paused')
  assert.deepEqual(await statesOf(fleet), [[id, 'paused']])
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([[...first.running.keys()], second.running.size], [[id], 0])
  assert.equal(first.running.get(id)?.boots, 1, 'its memory was kept')
})

test('an evicted sandbox whose node is lost continues on another node', async () => {
  await using fleet = await setUpEvicted()
  const { api, first, second, id } = fleet
  await lose(api, first)
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...second.running.keys()], [id])
  first.failAll(undefined)
  await waitFor('the first node to forget it', () => first.paused.size === 0)
  assert.deepEqual([...second.running.keys()], [id])
})

test('an eviction before the database knows of the upload loses nothing', async () => {
  await using fleet = await setUp()
  const { api, first, id } = fleet
  await fleet.pause()
  first.evict(id)
  // As before the first look at the node: neither the upload nor the ID of the pause is known.
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({
      ...current,
      keptId: undefined,
      durableGeneration: undefined,
    })),
  )
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...first.running.keys()], [id])

  await fleet.pause()
  first.evict(id)
  await reconcile(fleet)
  await fleet.waitUntilDurable()
  assert.equal((await fleet.record())?.state, 'paused')
})

test('a failed fetch leaves an evicted sandbox paused, and the next resume tries again', async () => {
  await using fleet = await setUpEvicted()
  const { first, id } = fleet
  first.fail('fetch', Code.Internal)
  assert.equal((await fleet.resume()).status, 500)
  const record = await fleet.record()
  assert.deepEqual([record?.state, record?.nodeId, record?.keptGeneration], ['paused', 'first', 1])
  first.fail('fetch', undefined)
  assert.equal((await fleet.resume()).status, 201)
  assert.deepEqual([...first.running.keys()], [id])
})

test('a deleted sandbox that was evicted is killed on its node, which deletes the objects', async () => {
  await using fleet = await setUpEvicted()
  const { api, first, id } = fleet
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  await waitFor('the end', async () => (await fleet.record())?.state === 'ended')
  assert.deepEqual([first.paused.size, [...new Set(first.killed)]], [0, [id]])
})
