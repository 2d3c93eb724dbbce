import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createMemoryCompaction } from './memory-compaction.ts'

const mebibyte = 1024 * 1024

function setup(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const state = { memoryMb: 20, compactMb: 12, processorMs: 0, fails: false }
  const reported: unknown[] = []
  let nowMs = 0
  let compactions = 0
  const compaction = createMemoryCompaction({
    compact() {
      compactions += 1
      if (state.fails) throw new Error('no libc')
      state.memoryMb = state.compactMb
    },
    memoryBytes: () => state.memoryMb * mebibyte,
    processorMs: () => state.processorMs,
    nowMs: () => nowMs,
    report: (cause) => reported.push(cause),
  })
  /** Advances the clock. envd uses `processorMs` in each second. */
  const pass = (seconds: number, processorMs = 0) => {
    for (let second = 0; second < seconds; second += 1) {
      nowMs += 1000
      state.processorMs += processorMs
      t.mock.timers.tick(1000)
    }
  }
  /** Advances the clock without running timers, as while the sandbox is frozen. */
  const freeze = (seconds: number) => void (nowMs += seconds * 1000)
  return { state, compaction, pass, freeze, reported, compactions: () => compactions }
}

test('memory is compacted once, five seconds after the last request of a booted sandbox', (t) => {
  const { compaction, pass, compactions } = setup(t)
  pass(60)
  assert.equal(compactions(), 0)
  compaction.requestStarted()()
  pass(4)
  assert.equal(compactions(), 0)
  pass(1)
  assert.equal(compactions(), 1)
  compaction.requestStarted()()
  pass(60)
  assert.equal(compactions(), 1)
})

test('memory is compacted again after it grew', (t) => {
  const { state, compaction, pass, compactions } = setup(t)
  compaction.compactOnce()
  for (const [memoryMb, expected] of [
    [15, 1],
    [16, 2],
    [15, 2],
    [30, 3],
  ] as const) {
    state.memoryMb = memoryMb
    compaction.requestStarted()()
    pass(10)
    assert.equal(compactions(), expected)
  }
})

test('a restored sandbox that did not grow is not compacted', (t) => {
  const { compaction, pass, compactions } = setup(t)
  compaction.compactOnce()
  compaction.compactOnce()
  compaction.requestStarted()()
  pass(60)
  assert.equal(compactions(), 1)
})

test('a compaction waits for the end of all requests', (t) => {
  const { compaction, pass, compactions } = setup(t)
  const [end, endOther] = [compaction.requestStarted(), compaction.requestStarted()]
  end()
  pass(60)
  endOther()
  pass(4)
  const endLast = compaction.requestStarted()
  pass(60)
  assert.equal(compactions(), 0)
  endLast()
  pass(10)
  assert.equal(compactions(), 1)
})

test('a compaction waits until envd is idle', (t) => {
  const { compaction, pass, compactions } = setup(t)
  compaction.requestStarted()()
  pass(60, 100)
  assert.equal(compactions(), 0)
  pass(10, 5)
  assert.equal(compactions(), 1)
})

test('a compaction waits while requests come one by one', (t) => {
  const { compaction, pass, compactions } = setup(t)
  for (let request = 0; request < 20; request += 1) {
    compaction.requestStarted()()
    pass(4)
  }
  assert.equal(compactions(), 0)
  pass(5)
  assert.equal(compactions(), 1)
})

test('a compaction does not delay what resumed the sandbox', (t) => {
  const { compaction, pass, freeze, compactions } = setup(t)
  compaction.requestStarted()()
  pass(4)
  freeze(3600)
  pass(1)
  assert.equal(compactions(), 0)
  pass(5)
  assert.equal(compactions(), 1)
})

test('a failure is reported', (t) => {
  const { state, compaction, pass, reported } = setup(t)
  state.fails = true
  compaction.compactOnce()
  compaction.requestStarted()()
  pass(60)
  assert.deepEqual(reported.map(String), ['Error: no libc'])
})

test('nothing is compacted after the end', (t) => {
  const { compaction, pass, compactions } = setup(t)
  const end = compaction.requestStarted()
  compaction.requestStarted()()
  compaction.close()
  end()
  pass(60)
  assert.equal(compactions(), 0)
})
