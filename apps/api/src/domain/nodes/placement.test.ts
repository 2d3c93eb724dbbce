import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costOf, rank, takeSample } from './placement.ts'
import type { Candidate, Load } from './placement.ts'

const gigabyte = 1024 ** 3
const none: Load = { cpuCount: 0, memoryBytes: 0, diskBytes: 0 }
const requested: Load = { cpuCount: 2, memoryBytes: gigabyte, diskBytes: gigabyte }

function candidate(id: string, changes: Partial<Candidate> = {}): Candidate {
  return {
    id,
    capacity: { cpuCount: 64, memoryBytes: 128 * gigabyte, diskBytes: 1024 * gigabyte },
    promised: none,
    used: none,
    hasReadyCell: false,
    hasLayers: true,
    ...changes,
  }
}

const ids = (found: readonly Candidate[]) => found.map(({ id }) => id)

test('the least loaded node comes first, by its scarcest resource', () => {
  const busy = candidate('cpu', { promised: { ...none, cpuCount: 32 } })
  const full = candidate('memory', { promised: { ...none, memoryBytes: 100 * gigabyte } })
  const used = candidate('disk', { used: { ...none, diskBytes: 400 * gigabyte } })
  assert.deepEqual(ids(rank([full, busy, used], requested)), ['disk', 'cpu', 'memory'])
})

test('measured use counts half', () => {
  const promised = candidate('a', { promised: { ...none, cpuCount: 30 } })
  const used = candidate('b', { used: { ...none, cpuCount: 60 } })
  assert.equal(costOf(promised, requested), costOf(used, requested))
})

test('a node with a ready cell wins against one that is a little less busy, not against an idle one', () => {
  const ready = candidate('ready', { hasReadyCell: true, promised: { ...none, cpuCount: 12 } })
  const bare = candidate('bare', { hasLayers: false })
  assert.deepEqual(ids(rank([bare, ready], requested)), ['ready', 'bare'])
  const busier = { ...ready, promised: { ...none, cpuCount: 40 } }
  assert.deepEqual(ids(rank([bare, busier], requested)), ['bare', 'ready'])
})

test('a full node comes last, but is not excluded', () => {
  const full = candidate('full', { promised: { ...none, cpuCount: 640 }, hasReadyCell: true })
  assert.deepEqual(ids(rank([full], requested)), ['full'])
  assert.deepEqual(ids(rank([full, candidate('idle')], requested)), ['idle', 'full'])
})

test('at most three nodes are compared, and all are chosen in time', () => {
  const nodes = Array.from({ length: 50 }, (_, index) => candidate(`n${index}`))
  const seen = new Set<string>()
  let seed = 1
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
  for (let round = 0; round < 2_000; round += 1) {
    const found = rank(nodes, requested, random)
    assert.equal(new Set(ids(found)).size, 3)
    seen.add(found[0]?.id ?? '')
  }
  assert.equal(seen.size, 50)
})

test('the best of three spreads 5,000 sandboxes over 50 nodes, from numbers that are current', () => {
  const counts = new Map(Array.from({ length: 50 }, (_, index) => [`n${index}`, 0]))
  let seed = 7
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
  for (let round = 0; round < 5_000; round += 1) {
    const nodes = [...counts].map(([id, count]) =>
      candidate(id, { promised: { ...none, cpuCount: 2 * count } }),
    )
    const [best] = rank(nodes, requested, random)
    counts.set(best?.id ?? '', (counts.get(best?.id ?? '') ?? 0) + 1)
  }
  const loads = [...counts.values()]
  assert.ok(Math.max(...loads) - Math.min(...loads) <= 10, loads.join(' '))
})

test('a node that has not been measured yet is neither preferred nor avoided', () => {
  const unknown = candidate('unknown', { capacity: none })
  const loaded = candidate('loaded', { promised: { ...none, cpuCount: 32 } })
  assert.deepEqual(ids(rank([unknown, loaded], requested)), ['unknown', 'loaded'])
})

test('a sample has three usable nodes, or all if there are fewer', () => {
  const nodes = Array.from({ length: 50 }, (_, index) => index)
  const sampleOf = (usable: readonly number[]) =>
    takeSample(nodes, Math.random, (one) => usable.includes(one)).toSorted((a, b) => a - b)
  assert.deepEqual(sampleOf([3, 17, 49]), [3, 17, 49])
  assert.deepEqual(sampleOf([42]), [42])
  assert.deepEqual(sampleOf([]), [])
})

test('a sample reads only the nodes that it draws', () => {
  let reads = 0
  const nodes = new Proxy(
    Array.from({ length: 10_000 }, (_, index) => index),
    {
      get(target, key, receiver): unknown {
        if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1
        return Reflect.get(target, key, receiver)
      },
    },
  )
  const sample = takeSample(nodes, Math.random, (one) => one % 2 === 0)
  assert.equal(new Set(sample).size, 3)
  // Half of the nodes are usable: more than a hundred draws are beyond chance.
  assert.ok(reads <= 100, `${reads} reads`)
})
