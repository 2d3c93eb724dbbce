import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { shape, simulateNode } from '../../sim/node.ts'

type Node = ReturnType<typeof simulateNode>

const ready = ({ pools }: Node) => pools.list().reduce((sum, pool) => sum + pool.ready, 0)
const isStocked = (node: Node, count: number) =>
  waitFor(`${count} ready sandboxes`, () => ready(node) === count)

test('wanted sandboxes are made ahead from one prototype, and stand still', async () => {
  const node = simulateNode({ readySandboxes: 2 })
  await isStocked(node, 2)
  assert.deepEqual([node.frozen.size, node.alive.size], [2, 2])
  assert.deepEqual(
    [...node.records.values()].map(({ phase, owner }) => [phase, owner]),
    [
      ['ready', undefined],
      ['ready', undefined],
    ],
  )
  assert.equal((await node.prototypeStore.list()).length, 1)
})

test('a create takes a ready one, which then goes on, and another is made in its place', async () => {
  const node = simulateNode({ readySandboxes: 1 })
  await isStocked(node, 1)
  const [waiting] = node.records.keys()
  const { record } = await node.create()
  assert.equal(record.cellId, waiting)
  assert.equal(node.frozen.has(record.cellId), false)
  await isStocked(node, 1)
})

test('one that died while it waited is passed over', async () => {
  const node = simulateNode({ readySandboxes: 1 })
  await isStocked(node, 1)
  const [dead] = node.records.keys()
  node.alive.clear()
  const { record } = await node.create()
  assert.notEqual(record.cellId, dead)
  await waitFor('the dead one to be erased', () => !node.records.has(dead ?? ''))
})

test('a pool grows with demand and shrinks to its floor without', async () => {
  const node = simulateNode({ readySandboxes: 0 })
  await Promise.all([1, 2, 3].map((n) => node.create({ sandboxId: `i${n}` })))
  assert.equal(node.pools.list()[0]?.target, 3)
  await isStocked(node, 3)
  await node.pools.trim()
  assert.equal(ready(node), 3)
  node.clock.nowMs = 3_600_000
  assert.equal(node.pools.list()[0]?.target, 0)
  await node.pools.trim()
  assert.deepEqual([ready(node), node.frozen.size, node.slots.size, node.alive.size], [0, 0, 3, 3])
})

test('the budget bounds what all pools hold together', async () => {
  const node = simulateNode({
    readySandboxes: 5,
    budgetBytes: 350,
    overrides: { memoryBytes: async () => 100 },
  })
  // The estimate for an unmeasured cell exceeds the budget.
  assert.equal(ready(node), 0)
  const larger = simulateNode({
    readySandboxes: 5,
    budgetBytes: 400 * 2 ** 20,
    overrides: { memoryBytes: async () => 100 * 2 ** 20 },
  })
  await isStocked(larger, 4)
  await larger.pools.close()
  assert.equal(ready(larger), 4)
})

test('a prototype that does not start is thrown away, and the create boots', async () => {
  const node = simulateNode({
    overrides: { runtime: { restore: () => Promise.reject(new Error('unreadable')) } },
    readySandboxes: 1,
  })
  await isStocked(node, 1)
  assert.equal((await node.prototypeStore.list()).length, 0)
  assert.equal(node.errors.length, 1)
  await node.create()
})

test('a lack of room says nothing against the prototype', async () => {
  let isFull = false
  const node = simulateNode({
    readySandboxes: 1,
    overrides: {
      disks: {
        async copy() {
          if (isFull) throw new Fault('exhausted', 'no_address', 'full')
        },
      },
    },
  })
  await isStocked(node, 1)
  isFull = true
  await node.create({ sandboxId: 'i1' })
  await assert.rejects(node.create({ sandboxId: 'i2' }), { kind: 'exhausted' })
  assert.equal((await node.prototypeStore.list()).length, 1)
})

test('what cannot be made ahead is told, leaves nothing, and creates go on', async () => {
  const node = simulateNode({
    readySandboxes: 1,
    overrides: { prepare: () => Promise.reject(new Error('silent')) },
    memoryFormat: '',
  })
  await waitFor('the failure to be told', () => node.errors.length > 0)
  assert.deepEqual([node.records.size, node.slots.size], [0, 0])
  await node.create()
  assert.equal(node.pools.list()[0]?.shape, shape)
})

test('a machine without memory refuses, and says so', async () => {
  const node = simulateNode({ overrides: { freeMemoryBytes: async () => 1000 } })
  await assert.rejects(node.create(), { kind: 'exhausted', reason: 'no_room' })
  assert.deepEqual([node.records.size, node.slots.size], [0, 0])
})

test('those who wait are served in order of arrival, and no more of them than will be served', async () => {
  const node = simulateNode()
  const results = await Promise.allSettled(
    Array.from({ length: 300 }, (_, index) => node.create({ sandboxId: `i${index}` })),
  )
  const served = results.filter(({ status }) => status === 'fulfilled').length
  assert.deepEqual([served, node.slots.size], [256, 256])
  assert.deepEqual(
    node.introduced.map(({ sandboxId }) => sandboxId),
    Array.from({ length: 256 }, (_, index) => `i${index}`),
  )
})

test('rules are in force before a ready one goes on, set once, and a failure leaves nothing', async () => {
  let isBroken = false
  const said: string[] = []
  const node = simulateNode({
    readySandboxes: 1,
    overrides: {
      setRules: async ({ number }) => {
        if (isBroken) throw new Error('no rules')
        said.push(`${number}: ${[...node.frozen].length} frozen`)
      },
    },
  })
  await isStocked(node, 1)
  const network = { allowOut: [], denyOut: ['0.0.0.0/0'] }
  const request = { shape, accessToken: undefined }
  const owner = (sandboxId: string) => ({ sandboxId, envVars: {}, network })
  await node.sandboxes.create({ ...request, owner: owner('i1') })
  assert.deepEqual(said, ['1: 1 frozen'])
  await isStocked(node, 1)
  isBroken = true
  await assert.rejects(node.sandboxes.create({ ...request, owner: owner('i2') }), /no rules/)
  assert.equal(node.sandboxes.running().length, 1)
  assert.equal(ready(node), 0)
  assert.deepEqual([node.records.size, node.slots.size, node.frozen.size], [1, 1, 0])
})

const identity = { sandboxId: 'i7', accessToken: 'secret' }

test('one that was told ahead who it will be is told nothing at its create', async () => {
  const node = simulateNode({ readySandboxes: 1 })
  assert.deepEqual(await node.pools.preassign(identity, new AbortController().signal), shape)
  const told = node.introduced.length
  const { record } = await node.create({ ...identity, isNamed: true })
  assert.deepEqual([node.introduced.length, node.introduced[0]?.sandboxId], [told, 'i7'])
  assert.deepEqual([record.phase, record.owner.sandboxId], ['running', 'i7'])
  assert.equal(node.records.get(record.cellId)?.phase, 'running')
  assert.deepEqual([node.frozen.has(record.cellId), node.levelled], [false, [record.cellId]])
  await isStocked(node, 1)
})

test('whoever asks for a name gets that one or none, and all else stays as it is', async () => {
  const node = simulateNode({ readySandboxes: 1 })
  await node.pools.preassign(identity, new AbortController().signal)
  const gone = { kind: 'conflict', reason: 'name_gone' }
  const wrong = [
    { changes: { sandboxId: 'i8' }, fault: gone },
    { changes: { accessToken: 'another' }, fault: gone },
    { changes: { memoryMb: 512 }, fault: gone },
    { changes: { envVars: { A: 'b' } }, fault: { reason: 'name_says_more' } },
    { changes: { snapshotId: 's1' }, fault: { reason: 'name_says_more' } },
  ]
  for (const { changes, fault } of wrong) {
    await assert.rejects(node.create({ ...identity, isNamed: true, ...changes }), fault)
  }
  assert.deepEqual([ready(node), node.sandboxes.running()], [1, []])
  node.alive.clear()
  await assert.rejects(node.create({ ...identity, isNamed: true }), gone)
})

test('others take the nameless first, then the named, which they tell anew', async () => {
  const node = simulateNode({ readySandboxes: 2 })
  await node.pools.preassign(identity, new AbortController().signal)
  await isStocked(node, 2)
  const named = node.introduced[0]?.address
  const first = await node.create({ sandboxId: 'n1' })
  assert.notEqual(first.slot.sandboxAddress, named)
  const second = await node.create({ sandboxId: 'n2' })
  assert.equal(second.slot.sandboxAddress, named)
  assert.deepEqual(
    node.introduced.map(({ sandboxId }) => sandboxId),
    ['i7', 'n1', 'n2'],
  )
  await assert.rejects(node.create({ ...identity, isNamed: true }), { reason: 'name_gone' })
})

test('a name that could not be told is told to the next, unless nobody waits any more', async () => {
  let failures = 0
  const node = simulateNode({
    readySandboxes: 1,
    overrides: {
      async initEnvd() {
        if (failures++ < 1) throw new Error('silent')
      },
    },
  })
  const leaving = new AbortController()
  const left = node.pools.preassign({ ...identity, sandboxId: 'gone' }, leaving.signal)
  leaving.abort()
  await assert.rejects(left, { kind: 'unavailable' })
  const named = node.pools.preassign(identity, new AbortController().signal)
  await waitFor('the failure', () => node.errors.length > 0)
  // A failure pauses the pool.
  node.clock.nowMs = 3_600_000
  await node.create({ sandboxId: 'i1' })
  assert.deepEqual(await named, shape)
})

test('a template that takes long to begin keeps nobody else waiting, and gets its prototype', async () => {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const node = simulateNode({
    readySandboxes: 1,
    patienceMs: 1,
    overrides: {
      runStartCommand: async ({ record }) => (record.templateId === 'slow' ? begun : undefined),
      findTemplate: () => ({ layer: 'l1' }),
    },
  })
  await isStocked(node, 1)
  const slow = { ...shape, templateId: 'slow', sandboxId: 'i1' }
  const creating = node.create(slow)
  await node.create({ sandboxId: 'i2' })
  await waitFor('the others', () => node.pools.list()[0]?.ready === 1)
  resolve()
  await creating
  await waitFor('one of the slow', () => node.pools.list()[1]?.ready === 1)
  assert.deepEqual(
    new Set((await node.prototypeStore.list()).map(({ templateId }) => templateId)),
    new Set(['base', 'slow']),
  )
})

test('what takes long to begin does not hold up the end', async () => {
  const node = simulateNode({
    readySandboxes: 1,
    patienceMs: 1,
    overrides: {
      runStartCommand: (_cell, { signal } = {}) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(new Error('stopped')))
        }),
    },
  })
  await waitFor('its beginning', () => node.alive.size === 1)
  await node.pools.close()
  assert.deepEqual([node.alive.size, node.records.size], [0, 0])
})
