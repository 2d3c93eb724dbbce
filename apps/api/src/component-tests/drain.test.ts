/** Running sandboxes of a drained node continue on another one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '@atoll/kit/clock'
import { systemClock } from '@atoll/kit/clock'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { Code } from '@connectrpc/connect'
import type { Sandbox } from '../domain/sandboxes/sandbox.ts'
import { manualClock, startApiUnderTest } from '../sim/api.ts'
import { lose } from '../sim/moves.ts'

const token = 'operators-only-token'
const headers = { 'x-admin-token': token }
const limits = { timeoutMs: 120_000 }

interface SetUpOptions {
  readonly hasObjects?: boolean
  readonly limit?: number
  readonly clock?: Clock
  /** Number of nodes that cannot restore what the others save. */
  readonly unsuitable?: number
}

async function setUp(options: SetUpOptions = {}) {
  const objects = options.hasObjects === false ? undefined : simulateObjects()
  const first = simulateNode(undefined, 'first', objects)
  const second = simulateNode(undefined, 'second', objects)
  const third = simulateNode(undefined, 'third', objects)
  const unsuitable = Array.from({ length: options.unsuitable ?? 0 }, (_, index) => {
    const node = simulateNode(undefined, `unsuitable-${index}`, objects)
    node.setSuitability({ memoryFormat: 'sim 2' })
    return node
  })
  const env = {
    ATOLL_ADMIN_TOKEN: token,
    ...(options.limit !== undefined && {
      ATOLL_TEAM_CONCURRENT_SANDBOXES: String(options.limit),
    }),
  }
  const others = [second, third, ...unsuitable]
  const { clock = systemClock } = options
  const api = await startApiUnderTest({ env, clock, node: first, others })
  const setStatus = async (id: string, body: object) => {
    const reply = await api.call('POST', `/nodes/${id}`, { headers, body })
    assert.equal(reply.status, 204, reply.text)
  }
  const drain = (nodeId = 'first') => setStatus(nodeId, { status: 'draining', moveSandboxes: true })
  for (const { nodeId } of others) await setStatus(nodeId, { status: 'draining' })
  const id = await api.create({ timeout: 3600, autoPause: true, autoResume: { enabled: true } })
  for (const { nodeId } of [second, ...unsuitable]) await setStatus(nodeId, { status: 'ready' })
  const show = async () => Object((await api.call('GET', `/sandboxes/${id}`)).json)
  const moves = async () => Object((await api.call('GET', '/nodes/first/moves', { headers })).json)
  const wake = (limitMs = 120_000) => {
    const caller = { accessToken: undefined, trafficToken: undefined }
    return api.wake({ sandboxId: id, port: 8080, ...caller }, AbortSignal.timeout(limitMs))
  }
  return {
    ...{ api, first, second, third, unsuitable, objects, id, drain, setStatus, show, moves, wake },
    /** Stops the api meanwhile. */
    record: () => api.withStores(({ sandboxes }) => sandboxes.find(id)),
    change: (edit: (current: Sandbox) => Sandbox) =>
      api.withStores(({ sandboxes }) => sandboxes.update(id, edit)),
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

const until = (what: string, isTrue: () => boolean | Promise<boolean>) =>
  waitFor(what, isTrue, limits)

test('a running sandbox moves off a drained node, with its start and its end time', async () => {
  await using fleet = await setUp({ limit: 1 })
  const { first, second, id } = fleet
  const before = await fleet.show()
  await fleet.drain()
  await until('the move', () => second.running.has(id))
  await until('the record', async () => (await fleet.show()).state === 'running')
  const after = await fleet.show()
  assert.deepEqual([after.startedAt, after.endAt], [before.startedAt, before.endAt])
  await until('the old node to forget it', () => first.paused.size + first.running.size === 0)
  const none = { running: 0, moving: 0, paused: 0, notUploaded: 0, staying: 0, problems: [] }
  assert.deepEqual(await fleet.moves(), { moveSandboxes: true, ...none })
  const record = await fleet.record()
  assert.deepEqual([record?.nodeId, record?.generation, record?.move], ['second', 2, undefined])
})

test('a move whose resume is not confirmed keeps the start and the end time', async () => {
  await using fleet = await setUp()
  const { api, second, id } = fleet
  const extend = await api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout: 36_000 } })
  assert.equal(extend.status, 204)
  const before = await fleet.show()
  second.fail('resume', Code.Unavailable, 'after')
  await fleet.drain()
  await until('the move', () => second.running.has(id))
  await until('the record', async () => (await fleet.show()).state === 'running')
  const after = await fleet.show()
  assert.deepEqual([after.startedAt, after.endAt], [before.startedAt, before.endAt])
})

test('a drain without moves leaves running sandboxes alone', async () => {
  await using fleet = await setUp()
  await fleet.setStatus('first', { status: 'draining' })
  assert.deepEqual(await fleet.moves(), {
    ...{ moveSandboxes: false, running: 1, moving: 0, paused: 0, notUploaded: 0 },
    ...{ staying: 0, problems: [] },
  })
  const refused = await fleet.api.call('POST', '/nodes/first', {
    headers,
    body: { status: 'ready', moveSandboxes: true },
  })
  assert.equal(refused.status, 400)
  assert.deepEqual([...fleet.first.running.keys()], [fleet.id])
})

test('without an object store a sandbox runs on, and says why', async () => {
  await using fleet = await setUp({ hasObjects: false })
  const { first, id } = fleet
  await fleet.drain()
  await until('the reason', async () => (await fleet.moves()).problems.length === 1)
  const { problems, running, staying } = await fleet.moves()
  assert.deepEqual([running, staying], [1, 1])
  assert.match(problems[0].problem, /ATOLL_S3_BUCKET/)
  assert.equal(problems[0].sandboxID, id)
  assert.equal(first.begun('pause'), 0)
  assert.equal((await fleet.show()).state, 'running')
})

test('a sandbox that no other node can take over runs on where it was, and says why', async () => {
  await using fleet = await setUp()
  const { first, second, id } = fleet
  second.fail('fetch', Code.FailedPrecondition)
  await fleet.drain()
  await until('the reason', async () => (await fleet.moves()).problems.length === 1)
  assert.equal((await fleet.moves()).problems[0].sandboxID, id)
  assert.deepEqual([...first.running.keys()], [id])
  assert.equal((await fleet.show()).state, 'running')
})

test('no api tries a move again before the time in the record', async () => {
  const clock = manualClock()
  await using fleet = await setUp({ clock })
  const { api, first, second, third, id } = fleet
  second.fail('fetch', Code.FailedPrecondition)
  await fleet.drain()
  await until('the reason', async () => (await fleet.moves()).problems.length === 1)
  second.fail('fetch', undefined)
  // The api has only the record now, like another one.
  await api.restart()
  await fleet.setStatus('second', { status: 'draining' })
  await fleet.setStatus('third', { status: 'ready' })
  const other = await api.create({ timeout: 3600 })
  assert.deepEqual([...third.running.keys()], [other])
  await fleet.setStatus('second', { status: 'ready' })
  await fleet.drain('third')
  await until('the move of another sandbox', () => second.running.has(other))
  assert.deepEqual([first.begun('pause'), [...first.running.keys()]], [1, [id]])
  clock.advance(60)
  await until('the next attempt', () => second.running.has(id))
})

test('a new drain request forgets why moves failed, and tries them at once', async () => {
  await using fleet = await setUp({ clock: manualClock() })
  const { first, second, id } = fleet
  second.fail('fetch', Code.FailedPrecondition)
  await fleet.drain()
  await until('the reason', async () => (await fleet.moves()).problems.length === 1)
  await until('the end of the attempt', () => first.running.has(id))
  second.fail('fetch', undefined)
  await fleet.drain()
  assert.deepEqual((await fleet.moves()).problems, [])
  await until('the move', () => second.running.has(id))
})

test('a move goes to a node that can restore the memory, and without one nothing is paused', async () => {
  await using fleet = await setUp({ unsuitable: 12 })
  const { first, second, unsuitable, id } = fleet
  await fleet.setStatus('second', { status: 'draining' })
  await fleet.drain()
  await until('the reason', async () => (await fleet.moves()).problems.length === 1)
  assert.match((await fleet.moves()).problems[0].problem, /same runtime release/)
  assert.equal(first.begun('pause'), 0)
  await fleet.setStatus('second', { status: 'ready' })
  await fleet.change((current) => ({ ...current, move: undefined }))
  await until('the move', () => second.running.has(id))
  assert.deepEqual(
    unsuitable.filter((node) => node.begun('fetch') > 0),
    [],
  )
})

test('a sandbox that cannot be paused runs on, and says why', async () => {
  await using fleet = await setUp()
  const { first, id } = fleet
  first.fail('pause', Code.FailedPrecondition)
  await fleet.drain()
  await until('the reason', async () => (await fleet.moves()).problems.length === 1)
  assert.deepEqual([...first.running.keys()], [id])
})

test('requests during a move wait for its end', async () => {
  await using fleet = await setUp()
  const { second, id } = fleet
  const release = second.hold('resume')
  await fleet.drain()
  await until('the resume', () => second.begun('resume') === 1)
  const woken = fleet.wake()
  release()
  assert.equal((await woken).kind, 'running')
  assert.deepEqual([...second.running.keys()], [id])
})

test('an api that starts finishes a move that another one has begun', async () => {
  await using fleet = await setUp()
  const { second, id } = fleet
  assert.equal((await fleet.api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  const endAt = new Date(Date.now() + 1_000_000)
  await fleet.setStatus('first', { status: 'draining' })
  await fleet.change((current) => ({
    ...current,
    move: { kind: 'underway', generation: current.keptGeneration ?? 0, endAt },
  }))
  await until('the move', () => second.running.has(id))
  await until('the record', async () => (await fleet.show()).state === 'running')
})

test('a move whose content only a lost node has waits for the node, and holds no requests', async () => {
  await using fleet = await setUp()
  const { api, first, second, third, objects, id } = fleet
  // The upload never ends, so the sandbox stays between pause and resume.
  if (objects) objects.set = () => objects
  await fleet.drain()
  await until('the pause on the node', () => first.paused.has(id))
  await lose(api, first)
  if (objects) Reflect.deleteProperty(objects, 'set')
  await fleet.setStatus('second', { status: 'draining' })
  await fleet.setStatus('third', { status: 'ready' })
  const other = await api.create({ timeout: 3600 })
  assert.ok(third.running.has(other))
  await fleet.setStatus('second', { status: 'ready' })
  await fleet.drain('third')
  await until('the move of another sandbox', () => second.running.has(other))
  const record = await fleet.record()
  assert.deepEqual(
    [record?.state, record?.generation, record?.move?.kind],
    ['paused', 1, 'underway'],
  )
  assert.notEqual((await fleet.wake(60_000)).kind, 'running')
})

test('requests wake a sandbox whose new node could not resume it', async () => {
  await using fleet = await setUp()
  const { second, id } = fleet
  second.fail('resume', Code.FailedPrecondition)
  await fleet.drain()
  await until('the failure', () => second.paused.has(id) && second.begun('resume') > 0)
  // The edge holds a request as long.
  assert.notEqual((await fleet.wake(60_000)).kind, 'running')
  second.fail('resume', undefined)
  assert.equal((await fleet.wake(60_000)).kind, 'running')
  assert.deepEqual([...second.running.keys()], [id])
})

test('a sandbox that a client pauses during its move stays paused', async () => {
  await using fleet = await setUp()
  const { api, first, second, objects, id } = fleet
  // The upload never ends, so the sandbox stays between pause and resume.
  if (objects) objects.set = () => objects
  await fleet.drain()
  await until('the pause', async () => (await fleet.moves()).moving === 1)
  await until('the pause on the node', () => first.paused.has(id))
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  const left = await fleet.moves()
  assert.deepEqual([left.moving, left.paused, left.notUploaded], [0, 1, 1])
  await api.restart()
  assert.deepEqual([first.running.size, second.running.size], [0, 0])
  assert.equal((await fleet.show()).state, 'paused')
})

test('a sandbox that is killed during its move is gone', async () => {
  await using fleet = await setUp()
  const { api, second, id } = fleet
  const release = second.hold('resume')
  await fleet.drain()
  await until('the resume', () => second.begun('resume') === 1)
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  release()
  await until('the end', () => second.running.size + second.paused.size === 0)
  assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 404)
})
