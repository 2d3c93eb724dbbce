import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { lastPrintedOf } from '../../domain/sandboxes/log.ts'
import type { LogEntry, LogFiles } from '../../domain/sandboxes/log.ts'
import { createSandboxLogs } from './collect-logs.ts'
import type { LogPorts } from './collect-logs.ts'

type Fetch = LogPorts['fetch']

const entry = (at: number): LogEntry => ({ at, level: 'info', message: `${at}`, fields: {} })

function setup(ids: readonly string[] = ['i1'], stored?: LogPorts['stored']) {
  let now = 10_000
  const here = new Set(ids)
  const asleep = new Set<string>()
  const kept = new Map<string, LogEntry[]>()
  const errors: unknown[] = []
  const asked: string[] = []
  const readFor: string[] = []
  const addresses = new Map<string, string>()
  const addressOf = (id: string) => addresses.get(id) ?? ''
  const written = new Map<string, LogEntry[]>(ids.map((id) => [id, []]))
  const behaviour: { fetch: Fetch; append: LogFiles['append'] } = {
    fetch: async ({ sandboxId }, afterMs) => {
      const entries = (written.get(sandboxId) ?? []).filter(({ at }) => at > afterMs)
      return { entries: entries.slice(0, 2), more: entries.length > 2 }
    },
    append: async (id, entries) => void kept.set(id, [...(kept.get(id) ?? []), ...entries]),
  }
  const files: LogFiles = {
    lastAt: async (id) => kept.get(id)?.at(-1)?.at ?? 0,
    lastPrinted: async (id) => {
      readFor.push(id)
      return lastPrintedOf(kept.get(id) ?? [])
    },
    append: (id, entries) => behaviour.append(id, entries),
    read: async ({ sandboxId }) => kept.get(sandboxId) ?? [],
    list: async () =>
      [...kept.keys()].map((sandboxId) => ({ sandboxId, sizeBytes: 1, writtenAtMs: 0 })),
    find: async (sandboxId) =>
      kept.has(sandboxId) ? { sandboxId, sizeBytes: 1, writtenAtMs: 7.5 } : undefined,
    remove: async (id) => void kept.delete(id),
    release: () => {},
  }
  const logs = createSandboxLogs({
    ...{ files, stored },
    running: () =>
      [...here].map((sandboxId) => ({
        sandboxId,
        address: addressOf(sandboxId),
        initToken: '',
        isAsleep: asleep.has(sandboxId),
      })),
    addressOf: (id) => (here.has(id) ? addressOf(id) : undefined),
    isHere: (id) => here.has(id),
    fetch(source, afterMs) {
      asked.push(source.sandboxId)
      return behaviour.fetch(source, afterMs)
    },
    nowMs: () => now,
    onError: (error) => errors.push(error),
  })
  return {
    logs,
    here,
    asleep,
    kept,
    errors,
    asked,
    readFor,
    addresses,
    behaviour,
    write: (id: string, ...times: number[]) => written.get(id)?.push(...times.map(entry)),
    advance: (ms: number) => void (now += ms),
    times: (id = 'i1') => (kept.get(id) ?? []).map(({ at }) => at),
  }
}

const query = { sandboxId: 'i1', newestFirst: false, limit: 10 }

test('a pass fetches all new entries of every sandbox, in several answers if necessary', async () => {
  const { logs, write, times } = setup(['i1', 'i2'])
  write('i1', 1, 2, 3, 4, 5)
  write('i2', 7)
  await logs.collect()
  assert.deepEqual([times('i1'), times('i2')], [[1, 2, 3, 4, 5], [7]])
  write('i1', 6)
  await logs.collect()
  assert.deepEqual(times('i1'), [1, 2, 3, 4, 5, 6])
})

test('an envd that never comes to an end is not asked without end', async () => {
  const { logs, asked, behaviour } = setup()
  let at = 0
  behaviour.fetch = async () => ({ entries: [entry((at += 1))], more: true })
  await logs.collect()
  assert.equal(asked.length, 4)
  behaviour.fetch = async () => ({ entries: [], more: true })
  await logs.collect()
  assert.equal(asked.length, 5)
})

/** Runs `count` passes, one per second. Returns the number of requests. */
async function passing({ logs, asked, advance }: ReturnType<typeof setup>, count: number) {
  const before = asked.length
  for (let pass = 0; pass < count; pass += 1) {
    advance(1000)
    await logs.collect()
  }
  return asked.length - before
}

test('a frozen sandbox is skipped for a minute, and asked as soon as it is thawed', async () => {
  const collecting = setup()
  const { logs, asleep, asked } = collecting
  asleep.add('i1')
  assert.equal(await passing(collecting, 180), 3)
  asleep.delete('i1')
  assert.equal(await passing(collecting, 1), 1)
  asleep.add('i1')
  await logs.read(query)
  assert.equal(asked.length, 5)
})

test('a sandbox without new entries is asked less often, until it has some', async () => {
  const collecting = setup()
  const { logs, write } = collecting
  const passes = (count: number) => passing(collecting, count)
  await passes(10)
  assert.equal(await passes(40), 10)
  write('i1', 1)
  await logs.read(query)
  assert.equal(await passes(3), 3)
})

test('reading a log fetches its new entries first', async () => {
  const { logs, write } = setup()
  write('i1', 1)
  assert.deepEqual(await logs.read(query), [entry(1)])
})

test('a read waits only briefly for a sandbox that does not answer', async () => {
  const { logs, behaviour, kept } = setup()
  kept.set('i1', [entry(1)])
  const answer = Promise.withResolvers<Awaited<ReturnType<Fetch>>>()
  behaviour.fetch = () => answer.promise
  assert.deepEqual(await logs.read(query), [entry(1)])
  answer.resolve({ entries: [entry(2)], more: false })
  await waitFor('the answer', () => kept.get('i1')?.length === 2)
})

test('an envd that fails is asked less and less often, and no failure of ours', async () => {
  const { logs, asked, behaviour, advance, errors, write, times } = setup()
  const good = behaviour.fetch
  behaviour.fetch = () => Promise.reject(new Fault('unavailable', 'x', 'x'))
  for (const [ms, count] of [
    [0, 1],
    [999, 1],
    [1, 2],
    [1999, 2],
    [1, 3],
    [60_000, 4],
  ] as const) {
    advance(ms)
    await logs.collect()
    await logs.read(query)
    assert.equal(asked.length, count)
  }
  assert.deepEqual(errors, [])
  behaviour.fetch = good
  write('i1', 1)
  advance(30_000)
  await logs.collect()
  await logs.collect()
  assert.deepEqual([times(), asked.length], [[1], 6])
})

test('a failed write is reported, and the entries are fetched again', async () => {
  const { logs, behaviour, errors, write, times, advance } = setup()
  const { append } = behaviour
  behaviour.append = () => Promise.reject(new Error('no space'))
  write('i1', 1)
  await logs.collect()
  assert.equal(errors.length, 1)
  behaviour.append = append
  advance(1000)
  await logs.collect()
  assert.deepEqual(times(), [1])
})

test('a sandbox gets one request at a time, and a later reader gets the newer entries', async () => {
  const { logs, behaviour, write, asked, times } = setup()
  const good = behaviour.fetch
  const held = Promise.withResolvers<void>()
  behaviour.fetch = async (...args) => {
    const answer = await good(...args)
    await held.promise
    return answer
  }
  const first = logs.collect()
  await waitFor('the first question', () => asked.length === 1)
  write('i1', 1)
  const second = logs.catchUp('i1')
  await logs.collect()
  assert.equal(asked.length, 1)
  held.resolve()
  await Promise.all([first, second])
  assert.deepEqual([asked.length, times()], [2, [1]])
})

test('at most 8 are asked at once', async () => {
  const ids = Array.from({ length: 20 }, (_, i) => `i${i}`)
  const { logs, behaviour, asked } = setup(ids)
  const held = Promise.withResolvers<void>()
  behaviour.fetch = async () => {
    await held.promise
    return { entries: [], more: false }
  }
  const pass = logs.collect()
  await waitFor('the first questions', () => asked.length === 8)
  held.resolve()
  await pass
  assert.equal(asked.length, 20)
})

test('the end is the last entry, whatever its time, and the sandbox is not asked again', async () => {
  const { logs, here, write, kept, asked } = setup()
  write('i1', 90_000)
  await logs.catchUp('i1')
  here.delete('i1')
  await logs.ended('i1', 'was killed')
  await logs.catchUp('i1')
  await logs.collect()
  assert.deepEqual(kept.get('i1')?.at(-1), {
    at: 90_001,
    level: 'info',
    message: 'Sandbox ended: it was killed',
    fields: { logger: 'node', reason: 'was killed' },
  })
  assert.equal(asked.length, 1)
})

test('the next user of the address of a resumed sandbox is not asked for its log', async () => {
  const { logs, addresses, behaviour, asked } = setup()
  behaviour.fetch = async () => {
    addresses.set('i1', '10.0.0.6')
    return { entries: [entry(1)], more: true }
  }
  await logs.collect()
  assert.deepEqual(asked, ['i1'])
})

test('logs of sandboxes that are here are not removed', async () => {
  const { logs, kept, advance } = setup()
  kept.set('i1', [entry(1)])
  kept.set('gone', [entry(1)])
  kept.set('old', [entry(1)])
  await logs.remove(['i1', 'gone', 'unknown'])
  assert.deepEqual([...kept.keys()], ['i1', 'old'])
  await logs.sweep()
  assert.deepEqual([...kept.keys()], ['i1', 'old'])
  advance(8 * 24 * 60 * 60 * 1000)
  await logs.sweep()
  assert.deepEqual([...kept.keys()], ['i1'])
})

const printed = (at: number, message = `line ${at}`): LogEntry => ({
  ...entry(at),
  message,
  fields: { stream: 'stdout' },
})

test('the last printed lines come from memory, without a question to a sandbox', async () => {
  const { logs, kept, behaviour, asked, readFor } = setup(['i1', 'i2', 'quiet'])
  kept.set('i2', [printed(1), entry(2)])
  behaviour.fetch = async ({ sandboxId }) => ({
    entries: sandboxId === 'i1' ? [printed(5), printed(6), entry(7)] : [],
    more: false,
  })
  const ids = ['i1', 'i2', 'quiet', 'elsewhere']
  assert.deepEqual(await logs.lastPrinted(ids), new Map([['i2', { at: 1, text: 'line 1' }]]))
  assert.deepEqual([asked, readFor], [[], ['i1', 'i2', 'quiet']])
  await logs.collect()
  const [questions, reads] = [asked.length, readFor.length]
  const lines = new Map([
    ['i1', { at: 6, text: 'line 6' }],
    ['i2', { at: 1, text: 'line 1' }],
  ])
  assert.deepEqual(await logs.lastPrinted(ids), lines)
  assert.deepEqual([asked.length, readFor.length], [questions, reads])
})

test('an ended sandbox has no last line', async () => {
  const { logs, here, kept } = setup()
  kept.set('i1', [printed(1)])
  assert.equal((await logs.lastPrinted(['i1'])).size, 1)
  here.delete('i1')
  await logs.ended('i1', 'was killed')
  assert.equal((await logs.lastPrinted(['i1'])).size, 0)
})

test('last lines do not wait for a sandbox that does not answer', async () => {
  const { logs, behaviour, kept, asked } = setup(['i1', 'i2'])
  kept.set('i1', [printed(1)])
  kept.set('i2', [printed(2)])
  const answer = Promise.withResolvers<Awaited<ReturnType<Fetch>>>()
  behaviour.fetch = () => answer.promise
  const pass = logs.catchUp('i1')
  await waitFor('the question', () => asked.length === 1)
  assert.deepEqual([...(await logs.lastPrinted(['i1', 'i2'])).keys()], ['i2'])
  answer.resolve({ entries: [], more: false })
  await pass
  await waitFor('the line', async () => (await logs.lastPrinted(['i1', 'i2'])).size === 2)
})

test('a log that is not here any more comes from the object store, and no other', async () => {
  const asked: string[] = []
  const stored = {
    async read({ sandboxId }: { readonly sandboxId: string }) {
      asked.push(sandboxId)
      return sandboxId === 'gone' ? [entry(3)] : undefined
    },
  }
  const { logs, kept } = setup(['i1'], stored)
  kept.set('ended', [entry(1)])
  const read = (sandboxId: string) => logs.read({ ...query, sandboxId })
  assert.deepEqual(await read('i1'), [])
  assert.deepEqual(await read('ended'), [entry(1)])
  assert.deepEqual(asked, [])
  assert.deepEqual(await read('gone'), [entry(3)])
  assert.deepEqual(await read('nowhere'), [])
  stored.read = () => Promise.reject(new Fault('unavailable', 'objects_unavailable', 'down'))
  assert.deepEqual(await read('ended'), [entry(1)])
  await assert.rejects(read('gone'), { reason: 'objects_unavailable' })
})

test('a log is exported whole, and an imported one continues after its last entry', async () => {
  const { logs, kept, write, times } = setup()
  assert.equal(await logs.export('i1'), undefined)
  kept.set('i1', [entry(1), entry(2)])
  assert.deepEqual(await logs.export('i1'), {
    sandboxId: 'i1',
    entries: [entry(1), entry(2)],
    writtenAtMs: 7,
  })
  await logs.import('i1', [entry(1), entry(2), entry(3)])
  write('i1', 2, 3, 4)
  await logs.collect()
  assert.deepEqual(times(), [1, 2, 3, 4])
})

test('who waits for the end of a sandbox finds it in the log', async () => {
  const { logs, here, kept } = setup()
  const seen: (string | undefined)[] = []
  logs.onEnded((id) => seen.push(kept.get(id)?.at(-1)?.message))
  here.delete('i1')
  await logs.ended('i1', 'was killed')
  assert.deepEqual(seen, ['Sandbox ended: it was killed'])
})

test('the log of a sandbox that another node has gets no end', async () => {
  const { logs, here, kept } = setup()
  kept.set('i1', [printed(1)])
  assert.equal((await logs.lastPrinted(['i1'])).size, 1)
  here.delete('i1')
  logs.forget('i1')
  assert.deepEqual(kept.get('i1'), [printed(1)])
  // The sandbox comes back with a longer log.
  here.add('i1')
  await logs.import('i1', [printed(1), printed(2)])
  assert.deepEqual((await logs.lastPrinted(['i1'])).get('i1'), { at: 2, text: 'line 2' })
})
