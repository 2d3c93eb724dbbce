import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

type Node = ReturnType<typeof simulateNode>
type Options = NonNullable<Parameters<typeof simulateNode>[0]>

/** Pre-warmed copies: the only cells without an owner here. */
const copies = ({ records }: Node) => [...records.values()].filter(({ owner }) => !owner)
const hasCopies = (node: Node, count: number) =>
  waitFor(`${count} pre-warmed copies`, () => node.frozen.size === count)

/** Returns a node with a sandbox and its snapshot `s1`, and no pool of the template. */
async function withSnapshot(
  options: Options = {},
  copiesAtOnce = 0,
  stuck: ReadonlySet<string> = new Set(),
): Promise<Node> {
  const beforeErase = (cellId: string) => {
    if (stuck.has(cellId)) throw new Error(`${cellId} is stuck`)
  }
  const overrides = { beforeErase, ...options.overrides }
  const node = simulateNode({ budgetBytes: 2 ** 40, ...options, overrides })
  await node.create({ sandboxId: 'source' })
  await node.pools.removeTemplate('base')
  await waitFor('the pool of the template to be empty', () => copies(node).length === 0)
  await node.sandboxes.snapshot('source', 's1', { copies: copiesAtOnce })
  return node
}

const createFrom = (node: Node, ...ids: string[]) =>
  Promise.all(ids.map((sandboxId) => node.create({ sandboxId, snapshotId: 's1' })))

test('a snapshot that is used twice within a minute gets pre-warmed copies, which have no network before they are frozen', async () => {
  const node = await withSnapshot()
  await createFrom(node, 'i1')
  await createFrom(node, 'i2')
  await hasCopies(node, 1)
  const [copy] = copies(node)
  // In this phase no later agent adopts it.
  assert.equal(copy?.phase, 'making')
  const slot = copy.slotNumber
  assert.deepEqual(node.rules.slice(-4), [
    ...[`${slot} 0.0.0.0/0`, `${slot} is restored`],
    ...[`${slot} `, `${slot} is forgotten`],
  ])
})

test('a create takes a pre-warmed copy, which gets the network of the request before it runs', async () => {
  const node = await withSnapshot()
  await createFrom(node, 'i1', 'i2')
  await hasCopies(node, 1)
  const [copy] = copies(node)
  const network = { allowOut: [], denyOut: ['10.0.0.0/8'] }
  const { record } = await node.create({ sandboxId: 'i3', snapshotId: 's1', network })
  assert.equal(record.cellId, copy?.cellId)
  assert.equal(node.frozen.has(record.cellId), false)
  assert.equal(node.records.get(record.cellId)?.phase, 'running')
  assert.ok(node.rules.includes(`${record.slotNumber} 10.0.0.0/8`))
})

test('a create of the template never gets a copy of a snapshot', async () => {
  const node = await withSnapshot()
  await createFrom(node, 'i1', 'i2')
  await hasCopies(node, 1)
  const [copy] = copies(node)
  const { record } = await node.create({ sandboxId: 'i3' })
  assert.notEqual(record.cellId, copy?.cellId)
})

/**
 * Waits until the pools have filled everything that comes before the pool of the template, which is created last: so the
 * only pre-warmed cell is that of the template, unless a snapshot got copies.
 */
async function hasNoCopies(node: Node): Promise<void> {
  await node.create({ sandboxId: 'other' })
  await waitFor('a cell of the template', () => copies(node).some(({ phase }) => phase === 'ready'))
  assert.equal(copies(node).length, 1)
}

test('a snapshot that is used once a while, or only by a fork, gets no copies', async () => {
  const node = await withSnapshot()
  await createFrom(node, 'i1')
  node.clock.nowMs += 61_000
  await createFrom(node, 'i2')
  await hasNoCopies(node)

  const forked = await withSnapshot({}, 2)
  await createFrom(forked, 'i1', 'i2')
  await hasNoCopies(forked)
})

test('a snapshot without memory gets no copies', async () => {
  const node = await withSnapshot({ memoryFormat: '' })
  await createFrom(node, 'i1', 'i2')
  await hasNoCopies(node)
})

test('a snapshot that is larger than the memory of all pools gets no copies', async () => {
  const node = await withSnapshot({
    budgetBytes: 2 ** 30,
    overrides: { snapshotBytes: async () => 2 ** 30 + 1 },
  })
  await createFrom(node, 'i1', 'i2')
  await hasNoCopies(node)
})

test('the copies of a deleted snapshot are removed, and unneeded ones too', async () => {
  const deleted = await withSnapshot()
  await createFrom(deleted, 'i1', 'i2')
  await hasCopies(deleted, 1)
  await deleted.pools.removeSnapshot('s1')
  assert.deepEqual([copies(deleted), deleted.frozen.size], [[], 0])

  const unneeded = await withSnapshot()
  await createFrom(unneeded, 'i1', 'i2')
  await hasCopies(unneeded, 1)
  unneeded.clock.nowMs += 3_600_000
  await unneeded.pools.trim()
  assert.deepEqual([copies(unneeded), unneeded.frozen.size], [[], 0])
})

test('a snapshot gets no copies while the host lacks the memory for one, and nothing is logged', async () => {
  const node = await withSnapshot({
    overrides: { snapshotBytes: async () => 2 ** 30, freeMemoryBytes: async () => 2 ** 30 },
  })
  await createFrom(node, 'i1', 'i2')
  await hasNoCopies(node)
  assert.deepEqual(node.errors, [])
})

test('copies of snapshots leave half of the memory of all pools, also when they take it on disk', async () => {
  const node = await withSnapshot({
    budgetBytes: 2 ** 30,
    overrides: {
      snapshotBytes: async () => 1,
      disks: { usedBytes: async () => 2 ** 28 - 1 },
    },
  })
  await createFrom(node, 'i1', 'i2', 'i3', 'i4', 'i5')
  await hasCopies(node, 2)
  await node.create({ sandboxId: 'other' })
  await waitFor('a cell of the template', () => copies(node).some(({ phase }) => phase === 'ready'))
  assert.equal(copies(node).filter(({ phase }) => phase === 'making').length, 2)
})

test('copies that cannot be removed are removed by the next attempt', async () => {
  const stuck = new Set<string>()
  const node = await withSnapshot({}, 0, stuck)
  await createFrom(node, 'i1', 'i2', 'i3')
  await hasCopies(node, 2)
  const [first, second] = copies(node)
  assert.ok(first && second)
  stuck.add(first.cellId)
  await assert.rejects(node.pools.removeSnapshot('s1'), /stuck/)
  assert.deepEqual(copies(node), [first])
  stuck.clear()
  await node.pools.removeSnapshot('s1')
  assert.deepEqual(copies(node), [])
})
