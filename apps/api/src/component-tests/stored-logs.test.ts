/** Logs that nodes have uploaded to the object store, while the node of the sandbox does not answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../sim/api.ts'
import { setUpMoves } from '../sim/moves.ts'

const recent = Date.now() - 60_000

async function setUp(withObjects = true) {
  const objects = withObjects ? simulateObjects() : undefined
  const nodes = ['first', 'second', 'third'].map((id) => simulateNode(undefined, id, objects))
  const [node, ...others] = nodes
  const api = await startApiUnderTest({ ...(node && { node }), others })
  const id = await api.create({ timeout: 3600 })
  const home = nodes.find(({ running }) => running.has(id)) ?? assert.fail('no node runs it')
  home.logs.write(id, { at: recent, message: 'hello' }, { at: recent + 1, message: 'last words' })
  const read = async (path: string, apiKey = api.ours.apiKey) => {
    const { status, json } = await api.call('GET', path, { headers: { 'x-api-key': apiKey } })
    if (status !== 200) return status
    const logs: readonly unknown[] = Object(json).logs
    return logs.map((one) => Object(one).message ?? JSON.parse(Object(one).line).message)
  }
  return {
    ...{ api, id, home, objects, read, others: nodes.filter((other) => other !== home) },
    end: () => api.call('DELETE', `/sandboxes/${id}`),
    paths: [`/sandboxes/${id}/logs`, `/v2/sandboxes/${id}/logs?direction=forward`],
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

const both = ['hello', 'last words']

test('the log of an ended sandbox is read without its node, by its team alone', async () => {
  await using fleet = await setUp()
  const { api, id, home, paths, read } = fleet
  await fleet.end()
  home.failAll(Code.Unavailable)
  for (const path of paths) {
    assert.deepEqual(await read(path), both)
    assert.deepEqual(await read(path, api.theirs.apiKey), [])
  }
  assert.deepEqual(await read(`/v2/sandboxes/${id}/logs?search=last`), ['last words'])
  assert.deepEqual(await read(`/v2/sandboxes/${id}/logs?level=error`), [])
  assert.deepEqual(await read(`/sandboxes/${id}/logs?start=${recent + 1}`), ['last words'])
})

test('the node of the sandbox answers with what it has', async () => {
  await using fleet = await setUp()
  const { id, home, objects, paths, read } = fleet
  await fleet.end()
  objects?.logs.set(id, [{ at: recent, message: 'in the store' }])
  for (const path of paths) assert.deepEqual(await read(path), both)
  home.failAll(Code.Unavailable)
  for (const path of paths) assert.deepEqual(await read(path), ['in the store'])
})

test('a node that does not reach the store is passed over once', async () => {
  await using fleet = await setUp()
  const { home, others, paths, read } = fleet
  await fleet.end()
  home.failAll(Code.Unavailable)
  others[0]?.failAll(Code.Unavailable)
  for (const path of paths) assert.deepEqual(await read(path), both)
})

test('a log that was not uploaded is unavailable, not empty', async () => {
  await using fleet = await setUp()
  const { home, paths, read } = fleet
  home.failAll(Code.Unavailable)
  for (const path of paths) assert.equal(await read(path), 503)
})

test('while the store is down, nodes answer with their logs, and nothing else does', async () => {
  await using fleet = await setUp()
  const { home, objects, paths, read } = fleet
  await fleet.end()
  if (objects) objects.isDown = true
  for (const path of paths) assert.deepEqual(await read(path), both)
  home.failAll(Code.Unavailable)
  for (const path of paths) assert.equal(await read(path), 503)
})

test('without an object store the log is unavailable until the node is back', async () => {
  await using fleet = await setUp(false)
  const { home, paths, read } = fleet
  await fleet.end()
  home.failAll(Code.Unavailable)
  for (const path of paths) assert.equal(await read(path), 503)
  home.failAll(undefined)
  for (const path of paths) assert.deepEqual(await read(path), both)
})

test('a sandbox that continues on another node has its whole log there', async () => {
  await using fleet = await setUpMoves()
  const { api, first, second, id } = fleet
  first.logs.write(id, { at: recent, message: 'on the first' })
  await fleet.pause()
  await fleet.waitUntilDurable()
  await fleet.setStatus('first', 'draining')
  assert.equal((await fleet.resume()).status, 201)
  await waitFor('the sandbox on the second node', () => second.running.has(id))
  second.logs.write(id, { at: recent + 1, message: 'on the second' })
  const read = async () => {
    const { json } = await api.call('GET', `/v2/sandboxes/${id}/logs?direction=forward`)
    const logs: readonly unknown[] = Object(json).logs
    return logs.map((one) => Object(one).message)
  }
  assert.deepEqual(await read(), ['on the first', 'on the second'])
  await fleet.pause()
  second.failAll(Code.Unavailable)
  assert.deepEqual(await read(), ['on the first', 'on the second'])
})
