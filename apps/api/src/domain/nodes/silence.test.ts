import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSilence } from './silence.ts'

/** Reads the heartbeats every two seconds; `beating` nodes send one each time. */
function observe(silence: ReturnType<typeof createSilence>, fromMs: number, toMs: number) {
  return (ids: readonly string[], beating: readonly string[]) => {
    for (let nowMs = fromMs; nowMs <= toMs; nowMs += 2_000) {
      const nodes = ids.map((id) => ({ id, seenAt: beating.includes(id) ? nowMs : 0 }))
      silence.note(nodes, nowMs)
    }
  }
}

test('a silent node is suspect after 15 s and lost after 60 s; nodes that beat are neither', () => {
  const silence = createSilence()
  observe(silence, 0, 14_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.equal(silence.isSuspect('a'), false)
  observe(silence, 16_000, 58_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.deepEqual([silence.isSuspect('a'), silence.isSuspect('b')], [true, false])
  assert.deepEqual(silence.lost(), [])
  observe(silence, 60_000, 60_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.deepEqual(silence.lost(), ['a'])
})

test('a node is lost after the time that is set', () => {
  const silence = createSilence({ lostMs: 600_000 })
  observe(silence, 0, 598_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.deepEqual(silence.lost(), [])
  observe(silence, 600_000, 600_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.deepEqual(silence.lost(), ['a'])
})

test('a heartbeat ends the silence', () => {
  const silence = createSilence()
  observe(silence, 0, 70_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.deepEqual(silence.lost(), ['a'])
  silence.note([{ id: 'a', seenAt: 1 }], 72_000)
  assert.deepEqual([silence.lost(), silence.isSuspect('a')], [[], false])
})

test('no node is lost when most are silent at once', () => {
  const silence = createSilence()
  observe(silence, 0, 120_000)(['a', 'b', 'c'], ['c'])
  assert.deepEqual([silence.isWidespread(), silence.lost()], [true, []])
  const alone = createSilence()
  observe(alone, 0, 120_000)(['a'], [])
  assert.deepEqual(alone.lost(), [])
})

test('no node is lost while all fall silent, or come back, one after the other', () => {
  const silence = createSilence()
  const ids = ['a', 'b', 'c']
  const read = (nowMs: number, last: readonly number[]) => {
    silence.note(
      ids.map((id, index) => ({ id, seenAt: last[index] })),
      nowMs,
    )
    assert.deepEqual(silence.lost(), [], `after ${nowMs} ms`)
  }
  const ends = [0, 2_000, 4_000]
  for (let nowMs = 0; nowMs <= 90_000; nowMs += 2_000)
    read(
      nowMs,
      ends.map((end) => Math.min(nowMs, end)),
    )
  read(92_000, [92_000, 2_000, 4_000])
  read(94_000, [94_000, 94_000, 4_000])
  for (let nowMs = 96_000; nowMs <= 150_000; nowMs += 2_000) read(nowMs, [nowMs, nowMs, 4_000])
  silence.note(
    ids.map((id, index) => ({ id, seenAt: index === 2 ? 4_000 : 154_000 })),
    154_000,
  )
  assert.deepEqual(silence.lost(), ['c'])
})

test('after an outage of the store, counting begins anew', () => {
  const silence = createSilence()
  observe(silence, 0, 58_000)(['a', 'b', 'c'], ['b', 'c'])
  observe(silence, 200_000, 210_000)(['a', 'b', 'c'], ['b', 'c'])
  assert.deepEqual([silence.lost(), silence.isSuspect('a')], [[], false])
})

/** Reads the heartbeats of a starting node and of two that serve. `seenAt` returns the last one of the starting node. */
function observeStart(
  silence: ReturnType<typeof createSilence>,
  [fromMs, toMs]: readonly [number, number],
  seenAt: (nowMs: number) => number,
) {
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += 2_000) {
    const others = ['b', 'c'].map((id) => ({ id, seenAt: nowMs, isStarting: false }))
    silence.note([{ id: 'a', seenAt: seenAt(nowMs), isStarting: true }, ...others], nowMs)
  }
}

const quarterHour = 15 * 60_000

test('a node whose agent takes minutes to start is suspect and not lost', () => {
  const silence = createSilence()
  observeStart(silence, [0, quarterHour - 2_000], (nowMs) => nowMs)
  assert.deepEqual([silence.isSuspect('a'), silence.isSuspect('b')], [true, false])
  assert.deepEqual([silence.lost(), silence.isWidespread()], [[], false])
  silence.note([{ id: 'a', seenAt: quarterHour, isStarting: false }], quarterHour)
  assert.equal(silence.isSuspect('a'), false)
})

test('a node that has been starting for 15 minutes is lost, also over crashes of its agent', () => {
  for (const seenAt of [(nowMs: number) => nowMs, (nowMs: number) => nowMs - (nowMs % 50_000)]) {
    const silence = createSilence()
    observeStart(silence, [0, quarterHour - 2_000], seenAt)
    assert.deepEqual(silence.lost(), [])
    observeStart(silence, [quarterHour, quarterHour], seenAt)
    assert.deepEqual(silence.lost(), ['a'])
    const served = quarterHour + 2_000
    silence.note([{ id: 'a', seenAt: served, isStarting: false }], served)
    assert.deepEqual([silence.lost(), silence.isSuspect('a')], [[], false])
  }
})

test('a node that serves between two starts is not lost', () => {
  const silence = createSilence()
  observeStart(silence, [0, quarterHour / 2], (nowMs) => nowMs)
  observe(
    silence,
    quarterHour / 2 + 2_000,
    quarterHour / 2 + 2_000,
  )(['a', 'b', 'c'], ['a', 'b', 'c'])
  observeStart(silence, [quarterHour / 2 + 4_000, quarterHour + 60_000], (nowMs) => nowMs)
  assert.deepEqual(silence.lost(), [])
})

test('no node is lost when the agents of most have been starting for 15 minutes', () => {
  const silence = createSilence()
  for (let nowMs = 0; nowMs <= 2 * quarterHour; nowMs += 2_000) {
    const nodes = ['a', 'b', 'c'].map((id) => ({ id, seenAt: nowMs, isStarting: id !== 'c' }))
    silence.note(nodes, nowMs)
  }
  assert.deepEqual([silence.isWidespread(), silence.lost()], [true, []])
})
