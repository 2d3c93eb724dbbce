import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import { createMemoryStore } from '@atoll/objects/testing/memory-store'
import type { LogEntry, LogQuery } from '../../domain/sandboxes/log.ts'
import { createObjectLogs } from './object-logs.ts'

const never = new AbortController().signal
const dayMs = 24 * 60 * 60 * 1000
const begin = Date.parse('2026-03-10T12:00:00Z')
const at = (days: number, ms = 0) => begin + days * dayMs + ms

const entry = (time: number, message = `at ${time}`): LogEntry => ({
  at: time,
  level: 'info',
  message,
  fields: { logger: 'test' },
})

function setUp() {
  const store = createMemoryStore()
  store.clockMs = begin
  let nowMs = begin
  const failures: string[] = []
  const openAs = (nodeId: string, key = ours) =>
    createObjectLogs({
      ...{ store, nodeId, nowMs: () => nowMs },
      keys: createKeyRing([key], async () => {}),
      onError: (_error, name) => failures.push(name),
    })
  const [first, second] = [openAs('node-1'), openAs('node-2')]
  const read = (query: Partial<LogQuery> = {}) =>
    second.read({ sandboxId: 'i1', newestFirst: false, limit: 100, ...query }, never)
  return {
    ...{ store, first, second, openAs, failures, read },
    times: async (query: Partial<LogQuery> = {}) => (await read(query))?.map((one) => one.at),
    keys: () => [...store.objects.keys()],
    /** Sets the clock of the store and, unless it has another day, that of the nodes. */
    setDay(days: number, nodeDays = days) {
      store.clockMs = at(days)
      nowMs = at(nodeDays)
    },
  }
}

const ours = newKey()

function sealed(key: string, content: object): Buffer {
  using sealing = createKeyRing([ours], async () => {}).beginWrite()
  return Buffer.from(sealing.seal(JSON.stringify(content), `object:${key}`))
}

test('what one node uploads another reads, for this sandbox alone', async () => {
  const { first, second, read } = setUp()
  const odd = entry(at(0, 2), 'a "b"\n\u2028 🌊')
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0, 1)), odd] }, never)
  assert.deepEqual(await read(), [entry(at(0, 1)), odd])
  assert.deepEqual(await read({ newestFirst: true, limit: 1 }), [odd])
  assert.deepEqual(await read({ fromMs: at(0, 3) }), [], 'a log without newer entries is a log')
  assert.deepEqual(await read({ search: '🌊', beforeMs: at(0, 2) }), [])
  for (const sandboxId of ['i', 'i11', 'i2']) {
    const query = { sandboxId, newestFirst: false, limit: 1 }
    assert.equal(await second.read(query, never), undefined)
  }
})

test('an upload is repeated after a crash without another object', async () => {
  const { first, keys } = setUp()
  for (const _attempt of [1, 2]) {
    await first.upload({ sandboxId: 'i1', entries: [entry(at(0))] }, never)
  }
  assert.deepEqual(keys(), [`logs/2026-03-10/i1/${at(0)}.node-1`])
})

test('the logs of nodes that had the sandbox one after the other are one log', async () => {
  const { first, second, times, setDay } = setUp()
  await first.upload({ sandboxId: 'i1', entries: [1, 2, 3].map((ms) => entry(at(0, ms))) }, never)
  setDay(2)
  const later = [entry(at(0, 2)), entry(at(0, 3)), entry(at(2, 4))]
  await second.upload({ sandboxId: 'i1', entries: later }, never)
  assert.deepEqual(await times(), [at(0, 1), at(0, 2), at(0, 3), at(2, 4)])
  await second.remove('i1', at(2, 4), never)
  assert.deepEqual(await times(), [at(0, 1), at(0, 2), at(0, 3)])
})

test('nothing in the store is readable without the key, or under the name of another log', async () => {
  const { first, store, openAs, keys } = setUp()
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0), 'secret words')] }, never)
  const [key = ''] = keys()
  const body = store.objects.get(key) ?? assert.fail('no object')
  assert.ok(!body.includes('secret') && !body.includes('test'))
  const query = { sandboxId: 'i1', newestFirst: false, limit: 1 }
  await assert.rejects(openAs('n', newKey()).read(query, never), {
    reason: 'encryption_key_missing',
  })
  store.objects.set(key.replace('i1', 'i2'), body)
  await assert.rejects(first.read({ ...query, sandboxId: 'i2' }, never), {
    reason: 'encrypted_value_damaged',
  })
})

test('of a log that is too long the oldest entries are left out', async () => {
  const { first, times } = setUp()
  const long = 'x'.repeat(1_000_000)
  const entries = [1, 2, 3, 4, 5, 6].map((ms) => entry(at(0, ms), long))
  await first.upload({ sandboxId: 'i1', entries }, never)
  assert.deepEqual(
    await times(),
    [3, 4, 5, 6].map((ms) => at(0, ms)),
  )
})

test('a log is read for 7 days, and removed a day later at most', async () => {
  const { first, times, keys, setDay } = setUp()
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0))] }, never)
  await first.upload({ sandboxId: 'i2', entries: [entry(at(1))] }, never)
  setDay(7)
  await first.sweep(never)
  assert.deepEqual([await times(), keys().length], [[at(0)], 2])
  setDay(7.01)
  assert.equal(await times(), undefined)
  setDay(8)
  await first.sweep(never)
  assert.deepEqual(keys(), [`logs/2026-03-11/i2/${at(1)}.node-1`])
})

test('the clock of a node that does the sweep does not count', async () => {
  const { first, keys, setDay } = setUp()
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0))] }, never)
  setDay(1, 300)
  await first.sweep(never)
  assert.equal(keys().length, 1)
  setDay(8, 0)
  await first.sweep(never)
  assert.deepEqual(keys(), [])
})

test('a log of a node with a slow clock is kept for 7 days after its upload', async () => {
  const { first, keys, setDay } = setUp()
  setDay(30, 0)
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0))] }, never)
  setDay(37)
  await first.sweep(never)
  assert.equal(keys().length, 1)
  setDay(37.01)
  await first.sweep(never)
  assert.deepEqual(keys(), [])
})

test('a sweep goes through many pages, and reaches nothing but old logs', async () => {
  const { store, first, keys, setDay, failures } = setUp()
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0))] }, never)
  const body = [...store.objects.values()][0] ?? assert.fail('no object')
  const others = ['logs/2026-03-10/i1/x', 'logs/a', 'layers/b', 'logs/2026-03-10', 'zlogs/2026']
  for (const key of others) store.objects.set(key, body)
  for (let count = 1; count <= 1_500; count += 1) {
    store.objects.set(`logs/2026-03-0${1 + (count % 9)}/i${count}/${at(-5)}.node-1`, body)
  }
  setDay(30)
  await first.sweep(never)
  // The copies do not open under their names: they stay, and are reported.
  assert.equal(failures.length, 1_500)
  assert.equal(keys().length, 1_500 + others.length)
  assert.ok(!keys().includes(`logs/2026-03-10/i1/${at(0)}.node-1`))
})

test('a log that this node cannot read is never removed', async () => {
  const { store, first, openAs, keys, setDay, failures } = setUp()
  await first.upload({ sandboxId: 'i1', entries: [entry(at(0))] }, never)
  const other = newKey()
  await openAs('node-3', other).upload({ sandboxId: 'i2', entries: [entry(at(0))] }, never)
  const newer = `logs/2026-03-10/i3/${at(0)}.node-4`
  store.objects.set(newer, sealed(newer, { format: 2, content: {} }))
  setDay(30)
  await first.sweep(never)
  assert.deepEqual(keys().toSorted(), failures.toSorted())
  assert.equal(keys().length, 2)
})

test('a log of a newer release is refused', async () => {
  const { store, read } = setUp()
  const key = `logs/2026-03-10/i1/${at(0)}.node-1`
  store.objects.set(key, sealed(key, { format: 2, content: {} }))
  await assert.rejects(read(), { reason: 'object_unreadable' })
})

test('a read fails while the store is down: no log is not the same as no answer', async () => {
  const { store, read } = setUp()
  store.setDown(true)
  await assert.rejects(read(), { reason: 'objects_unavailable' })
})
