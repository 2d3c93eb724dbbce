import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { openStores } from '../../db/stores.ts'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { onPostgres, unsavedKeys } from '../../sim/store.ts'

/** Interrupted network changes: record and node agree afterwards. */

let api: ApiUnderTest
let id: string
beforeEach(async () => {
  api = await startApiUnderTest()
  id = await api.create({ network: { denyOut: ['1.1.1.1'] } })
})
afterEach(() => api[Symbol.asyncDispose]())

const put = (denyOut: readonly string[]) =>
  api.call('PUT', `/sandboxes/${id}/network`, { body: { denyOut } })

const enforced = () => api.node.running.get(id)?.network?.denyOut

async function shown(): Promise<unknown> {
  return Object((await api.call('GET', `/sandboxes/${id}`)).json).network.denyOut
}

for (const [code, status] of [
  [Code.Internal, 500],
  [Code.Unavailable, 503],
  [Code.DeadlineExceeded, 500],
] as const) {
  test(`a node that fails with ${Code[code]} changes nothing, and the next change works`, async () => {
    api.node.fail('network', code)
    assert.equal((await put(['9.9.9.9'])).status, status)
    assert.deepEqual([await shown(), enforced()], [['1.1.1.1'], ['1.1.1.1']])
    api.node.fail('network', undefined)
    assert.equal((await put(['8.8.8.8'])).status, 204)
    assert.deepEqual([await shown(), enforced()], [['8.8.8.8'], ['8.8.8.8']])
  })
}

test('a change whose answer was lost is taken back', async () => {
  api.node.fail('network', Code.Unavailable, 'after')
  assert.equal((await put(['9.9.9.9'])).status, 503)
  assert.deepEqual(await shown(), ['1.1.1.1'])
  api.node.fail('network', undefined)
  await waitFor('the old rules', () => enforced()?.join() === '1.1.1.1')
  assert.deepEqual(await shown(), ['1.1.1.1'])
})

test('a change that a dead server left unfinished is undone: the node enforces the rules of the record', async () => {
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({
      ...current,
      network: { denyOut: ['2.2.2.2'] },
      networkHolder: 'a process that died',
    })),
  )
  await waitFor('the rules of the record', () => enforced()?.join() === '2.2.2.2')
  assert.equal((await put(['9.9.9.9'])).status, 204)
  const left = await api.withStores(({ sandboxes }) => sandboxes.listNetworkChanges())
  assert.deepEqual([await shown(), enforced(), left], [['9.9.9.9'], ['9.9.9.9'], []])
})

test('a pause settles an unfinished change', async () => {
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  await api.withStores(({ sandboxes }) =>
    sandboxes.update(id, (current) => ({ ...current, networkHolder: 'a process that died' })),
  )
  await waitFor('no process to hold the change', async () => {
    const left = await api.withStores(({ sandboxes }) => sandboxes.listNetworkChanges())
    return left.length === 0
  })
  assert.equal(api.node.begun('network'), 0)
})

test('a change that meets a pause half-way is refused, and the old rules come back with the resume', async () => {
  const release = api.node.hold('network')
  const update = put(['9.9.9.9'])
  await waitFor('the update', () => api.node.begun('network') === 1)
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  release()
  assert.equal((await update).status, 404)
  await api.call('POST', `/v2/sandboxes/${id}/connect`)
  assert.deepEqual([await shown(), enforced()], [['1.1.1.1'], ['1.1.1.1']])
  assert.equal((await put(['9.9.9.9'])).status, 204)
})

test('a change of what was killed meanwhile is refused', async () => {
  const release = api.node.hold('network')
  const update = put(['9.9.9.9'])
  await waitFor('the update', () => api.node.begun('network') === 1)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  assert.equal((await update).status, 404)
})

test(
  'a process that was taken for dead does not write over what others settled',
  onPostgres,
  async () => {
    const release = api.node.hold('network')
    const update = put(['9.9.9.9'])
    await waitFor('the update', () => api.node.begun('network') === 1)
    const stores = await openStores(api.store.location, unsavedKeys())
    await stores.sandboxes.update(id, (current) => ({ ...current, networkHolder: 'another' }))
    await stores.close()
    release()
    assert.equal((await update).status, 503)
    assert.deepEqual(await shown(), ['1.1.1.1'])
    await waitFor('the old rules', () => enforced()?.join() === '1.1.1.1')
  },
)

test('changes by two processes take turns', onPostgres, async () => {
  await using second = await startApiUnderTest({ beside: api })
  const entries = Array.from({ length: 10 }, (_, at) => `9.9.9.${at + 1}`)
  const path = `/sandboxes/${id}/network`
  const replies = await Promise.all(
    entries.map((entry, at) =>
      (at % 2 ? api : second).call('PUT', path, { body: { denyOut: [entry] } }),
    ),
  )
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([204]))
  assert.deepEqual(enforced(), await shown())
})
