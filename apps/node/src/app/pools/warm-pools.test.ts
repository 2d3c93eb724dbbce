import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { shape, simulateNode } from '../../sim/node.ts'

type Node = ReturnType<typeof simulateNode>

const ready = ({ pools }: Node) => pools.list().reduce((sum, pool) => sum + pool.ready, 0)
const isStocked = (node: Node, count: number) =>
  waitFor(`${count} ready sandboxes`, () => ready(node) === count)

test('pre-warmed cells are restored from one prototype and frozen', async () => {
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

test('a create takes a pre-warmed cell, thaws it, and the pool is refilled', async () => {
  const node = simulateNode({ readySandboxes: 1 })
  await isStocked(node, 1)
  const [waiting] = node.records.keys()
  const { record } = await node.create()
  assert.equal(record.cellId, waiting)
  assert.equal(node.frozen.has(record.cellId), false)
  await isStocked(node, 1)
})

test('a build gets a pre-warmed cell, else a restored one, else none, and does not count as demand', async () => {
  const node = simulateNode({ readySandboxes: 1 })
  await isStocked(node, 1)
  const [waiting] = node.records.keys()
  const target = () => node.pools.list().map((pool) => pool.target)
  const pooled = await node.pools.takeWithoutBoot({ shape })
  assert.equal(pooled?.record.cellId, waiting)
  await isStocked(node, 1)
  const [first, second] = await Promise.all([
    node.pools.takeWithoutBoot({ shape }),
    node.pools.takeWithoutBoot({ shape }),
  ])
  assert.ok(first && second)
  assert.deepEqual(target(), [1])
  const larger = { ...shape, memoryMb: 512 }
  assert.equal(await node.pools.takeWithoutBoot({ shape: larger }), undefined)
  const absent = { ...shape, templateId: 'absent' }
  assert.equal(await node.pools.takeWithoutBoot({ shape: absent }), undefined)
  assert.deepEqual(target(), [1])
})

test('a pre-warmed cell that died is skipped', async () => {
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

test('the budget limits the memory of all pools together', async () => {
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

test('a full host does not discard the prototype', async () => {
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

test('a failed pre-warm is reported and leaves nothing, and creates still work', async () => {
  const node = simulateNode({
    readySandboxes: 1,
    overrides: { prepare: () => Promise.reject(new Error('silent')) },
    memoryFormat: '',
  })
  await waitFor('the failure to be reported', () => node.errors.length > 0)
  assert.deepEqual([node.records.size, node.slots.size], [0, 0])
  await node.create()
  assert.equal(node.pools.list()[0]?.shape, shape)
})

test('a host without free memory refuses a create with the reason', async () => {
  const node = simulateNode({ overrides: { freeMemoryBytes: async () => 1000 } })
  await assert.rejects(node.create(), { kind: 'exhausted', reason: 'no_room' })
  assert.deepEqual([node.records.size, node.slots.size], [0, 0])
})

test('waiting requests are served in order, and requests beyond the limit are refused', async () => {
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

test('rules are applied once before a pre-warmed cell is thawed, and a failure leaves nothing', async () => {
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

test('a preassigned cell gets no identity at its create', async () => {
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

test('a named create gets the cell of that name or none, and the pool is unchanged otherwise', async () => {
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

test('other creates take cells without identity first, then preassigned ones, which get a new identity', async () => {
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

test('an identity that could not be assigned goes to the next cell, unless its offer was withdrawn', async () => {
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

test('a slow template does not block the others, and gets its prototype', async () => {
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

test('a slow prototype does not delay the shutdown', async () => {
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
