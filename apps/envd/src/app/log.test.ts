import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from './log.ts'

function setup() {
  let now = 1_000_000
  const log = createLog({ clock: { now: () => new Date(now) }, nowMs: () => now })
  return {
    log,
    advance: (ms: number) => void (now += ms),
    /** Reads all entries after `after`, in as many calls as needed. */
    take(after = 0) {
      const { entries, more } = log.readAfter(after)
      return { entries: entries.map((text): Entry => JSON.parse(text)), more }
    },
  }
}

interface Entry {
  readonly at: number
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

test('an entry has its time, level, message and fields', () => {
  const { log, take } = setup()
  log.write('warn', 'something', { logger: 'envd', what: 'a "word"\n' })
  const fields = { logger: 'envd', what: 'a "word"\n' }
  assert.deepEqual(take().entries, [{ at: 1_000_000, level: 'warn', message: 'something', fields }])
})

test('each entry has a unique time, even if the clock steps back', () => {
  const { log, take, advance } = setup()
  for (const message of ['a', 'b']) log.write('info', message, {})
  advance(-500)
  log.write('info', 'c', {})
  assert.deepEqual(
    take().entries.map(({ at, message }) => [at, message]),
    [
      [1_000_000, 'a'],
      [1_000_001, 'b'],
      [1_000_002, 'c'],
    ],
  )
})

test('reading after a time deletes earlier entries and returns later ones again', () => {
  const { log, take } = setup()
  for (const message of ['a', 'b', 'c']) log.write('info', message, {})
  assert.deepEqual(take(1_000_000).entries.length, 2)
  assert.deepEqual(take(0).entries.length, 2)
  assert.deepEqual(take(1_000_002), { entries: [], more: false })
})

test('entries beyond a burst of 1000 are counted, and the count is logged once', () => {
  const { log, take, advance } = setup()
  for (let i = 0; i < 1200; i += 1) log.write('info', `${i}`, {})
  assert.equal(log.canWrite(), false)
  log.countDropped(77)
  const { entries } = take()
  assert.equal(entries.length, 1001)
  const { level, message } = entries.at(-1) ?? assert.fail()
  assert.deepEqual(
    [level, message],
    ['warn', 'Log rate limit exceeded: dropped 200 entries and 77 bytes of output'],
  )
  advance(1000)
  assert.equal(log.canWrite(), true)
  assert.equal(take().entries.length, 1001)
})

test('a response is bounded, and says that there is more', () => {
  const { log, take } = setup()
  for (let i = 0; i < 120; i += 1) log.write('info', 'x'.repeat(2000), {})
  log.write('info', 'y'.repeat(40_000), {})
  const first = take()
  assert.deepEqual([first.entries.length < 121, first.more], [true, true])
  const rest = take(first.entries.at(-1)?.at)
  assert.deepEqual([first.entries.length + rest.entries.length, rest.more], [121, false])
})

test('a full buffer drops the oldest entries and logs how many', () => {
  const { log, take, advance } = setup()
  for (let i = 0; i < 600; i += 1) {
    log.write('info', 'x'.repeat(2000), { number: `${i}` })
    advance(50)
  }
  let after = 0
  const all: Entry[] = []
  for (let more = true; more; after = all.at(-1)?.at ?? 0) {
    const answer = take(after)
    all.push(...answer.entries)
    more = answer.more
  }
  const [dropped] = /\d+(?= entries)/.exec(all.at(-1)?.message ?? '') ?? []
  assert.ok(all.length < 300)
  assert.equal(Number(dropped) + all.length - 1, 600)
  assert.equal(all.at(-2)?.fields['number'], '599')
})

test('clear removes all entries, and times continue to increase', () => {
  const { log, take } = setup()
  log.write('info', 'a', {})
  log.countDropped(5)
  log.clear()
  log.write('info', 'b', {})
  assert.deepEqual(
    take().entries.map(({ at, message }) => [at, message]),
    [[1_000_001, 'b']],
  )
})
