/** Objects of sandboxes that ended without a kill are deleted by a node that has the object store. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { Code } from '@connectrpc/connect'
import { end } from '../domain/sandboxes/sandbox.ts'
import { startApiUnderTest } from '../sim/api.ts'

async function setUp() {
  const objects = simulateObjects()
  const first = simulateNode(undefined, 'first', objects)
  const second = simulateNode(undefined, 'second', objects)
  const api = await startApiUnderTest({ node: first, others: [second] })
  const id = await api.create({ timeout: 3600 })
  const home = first.running.has(id) ? first : second
  const pause = async () => {
    assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  }
  const resume = async () => {
    const reply = await api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60 } })
    assert.equal(reply.status, 201)
  }
  /** Each look restarts the API, which begins with a pass. */
  const waitUntilDeleted = (sandboxId = id) =>
    waitFor('the deletion', () =>
      api.withStores(async ({ sandboxes }) => {
        const record = await sandboxes.find(sandboxId)
        return record?.state === 'ended' && record.storedGeneration === undefined
      }),
    )
  return {
    ...{ objects, api, id, home, pause, resume, waitUntilDeleted },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

test('a sandbox that dies by itself after a pause leaves no objects, but those of newer generations', async () => {
  await using fleet = await setUp()
  const { objects, id, home } = fleet
  await fleet.pause()
  await fleet.resume()
  const key = `${id}.1`
  assert.deepEqual([...objects.keys()], [key])
  // As after a restore of the database, which does not know of this pause.
  objects.set(`${id}.9`, objects.get(key) ?? assert.fail('no content'))
  home.end(id, 'ran out of memory')
  await fleet.waitUntilDeleted()
  assert.deepEqual([...objects.keys()], [`${id}.9`])
})

test('a sandbox that ended with its node has its objects deleted by another node', async () => {
  await using fleet = await setUp()
  const { api, objects, id, home } = fleet
  await fleet.pause()
  await fleet.resume()
  home.failAll(Code.Unavailable)
  await api.restart()
  assert.equal(objects.size, 1)
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => end(current, new Date(), 'was lost')),
  )
  await waitFor('the deletion', () => objects.size === 0)
})

test('a paused sandbox is kept when its record ended at an older generation: the store is an older copy', async () => {
  await using fleet = await setUp()
  const { api, id, home } = fleet
  await fleet.pause()
  await fleet.resume()
  await fleet.pause()
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({
      ...end(current, new Date(), 'was lost'),
      generation: 1,
      storedGeneration: undefined,
    })),
  )
  // The reconciler ends running sandboxes without a record: the second end shows that a whole pass is over.
  for (const stray of ['istray1', 'istray2']) {
    home.addOrphan(stray)
    await api.restart()
    await waitFor('a pass', () => !home.running.has(stray))
  }
  assert.deepEqual([...home.paused.keys()], [id])
})

test('objects of sandboxes that run or are paused stay', async () => {
  await using fleet = await setUp()
  const { api, objects, id } = fleet
  await fleet.pause()
  // The end of another one shows that a pass has run.
  const other = await api.create({ timeout: 3600 })
  assert.equal((await api.call('POST', `/sandboxes/${other}/pause`)).status, 204)
  assert.equal((await api.call('DELETE', `/sandboxes/${other}`)).status, 204)
  await fleet.waitUntilDeleted(other)
  assert.deepEqual([...objects.keys()], [`${id}.1`])
})
