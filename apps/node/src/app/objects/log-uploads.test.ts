import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogEntry, LogNote } from '../../domain/sandboxes/log.ts'
import { createLogUploads } from './log-uploads.ts'

const { signal } = new AbortController()
const hourMs = 60 * 60 * 1000

interface Log {
  readonly times: readonly number[]
  readonly writtenAtMs: number
}

const entry = (at: number): LogEntry => ({ at, level: 'info', message: `${at}`, fields: {} })

function setUp(logs: Readonly<Record<string, Log>> = {}) {
  const kept = new Map(Object.entries(logs))
  const notes = new Map<string, LogNote>()
  const states = new Map<string, 'running' | 'paused'>()
  const stored = new Set<string>()
  const state = { nowMs: 0, isDown: false, looks: 0 }
  const check = () => {
    if (state.isDown) throw new Error('the store is down')
  }
  const open = () =>
    createLogUploads({
      logs: {
        async list() {
          state.looks += 1
          return [...kept].map(([sandboxId, { writtenAtMs }]) => ({
            ...{ sandboxId, writtenAtMs: writtenAtMs + 0.25 },
            sizeBytes: 1,
          }))
        },
        async export(sandboxId) {
          const log = kept.get(sandboxId)
          if (!log) return undefined
          return { sandboxId, entries: log.times.map(entry), writtenAtMs: log.writtenAtMs }
        },
      },
      notes: {
        find: (id) => notes.get(id),
        set: async (id, note) => void notes.set(id, note),
        async keepOnly(ids) {
          for (const id of notes.keys()) if (!ids.has(id)) notes.delete(id)
        },
      },
      stored: {
        async upload({ sandboxId, entries }) {
          check()
          stored.add(`${sandboxId} ${entries.at(-1)?.at}`)
        },
        async remove(sandboxId, lastAt) {
          check()
          stored.delete(`${sandboxId} ${lastAt}`)
        },
      },
      stateOf: (id) => states.get(id),
      nowMs: () => state.nowMs,
    })
  return { kept, notes, states, stored, state, open }
}

async function pass(uploads: ReturnType<typeof createLogUploads>): Promise<string[]> {
  const tasks = await uploads.findUploads(signal)
  for (const { run } of tasks) await run()
  return tasks.map(({ name }) => name)
}

test('at first all logs are uploaded that an earlier process left, but not those of running sandboxes', async () => {
  const { states, stored, open, notes } = setUp({
    ended: { times: [1, 2], writtenAtMs: 5 },
    uploaded: { times: [3], writtenAtMs: 6 },
    running: { times: [4], writtenAtMs: 7 },
    paused: { times: [5], writtenAtMs: 8 },
  })
  states.set('running', 'running').set('paused', 'paused')
  notes.set('uploaded', { writtenAtMs: 6, lastAt: 3 }).set('gone', { writtenAtMs: 1, lastAt: 1 })
  const tried = await pass(open())
  assert.equal(tried[0], 'logs/paused', 'it may be about to leave')
  assert.deepEqual([...stored].toSorted(), ['ended 2', 'paused 5'])
  assert.equal(notes.has('gone'), false)
  assert.deepEqual(await pass(open()), ['logs/running'])
  assert.equal(stored.size, 2)
})

test('a pass looks only at what was noted', async () => {
  const { kept, stored, state, open } = setUp()
  const uploads = open()
  await pass(uploads)
  kept.set('a', { times: [1], writtenAtMs: 1 }).set('b', { times: [1], writtenAtMs: 1 })
  uploads.note('a')
  assert.deepEqual(await pass(uploads), ['logs/a'])
  assert.deepEqual(await pass(uploads), [])
  assert.deepEqual([[...stored], state.looks], [['a 1'], 1])
  state.nowMs += hourMs + 1
  assert.deepEqual(await pass(uploads), ['logs/b'])
})

test('a later upload replaces the earlier one of this node', async () => {
  const { kept, states, stored, open } = setUp({ i1: { times: [1, 2], writtenAtMs: 5 } })
  states.set('i1', 'paused')
  const uploads = open()
  await pass(uploads)
  states.delete('i1')
  kept.set('i1', { times: [1, 2, 3], writtenAtMs: 9 })
  uploads.note('i1')
  await pass(uploads)
  assert.deepEqual([...stored], ['i1 3'])
})

test('uploads that fail are tried again, also by the next process', async () => {
  const { stored, state, open } = setUp({ i1: { times: [1], writtenAtMs: 5 } })
  const uploads = open()
  state.isDown = true
  await assert.rejects(pass(uploads), /the store is down/)
  await assert.rejects(pass(uploads), /the store is down/)
  const next = open()
  await assert.rejects(pass(next), /the store is down/)
  state.isDown = false
  await pass(next)
  assert.deepEqual([...stored], ['i1 1'])
})

test('a log that was written meanwhile is uploaded again', async () => {
  const { kept, stored, open } = setUp({ i1: { times: [1], writtenAtMs: 5 } })
  const uploads = open()
  const [task] = await uploads.findUploads(signal)
  const running = task?.run()
  kept.set('i1', { times: [1, 2], writtenAtMs: 6 })
  uploads.note('i1')
  await running
  assert.deepEqual(await pass(uploads), ['logs/i1'])
  assert.deepEqual([...stored], ['i1 2'])
})

test('logs older than 7 days, and empty ones, are not uploaded', async () => {
  const { stored, state, open } = setUp({
    old: { times: [1], writtenAtMs: 5 },
    empty: { times: [], writtenAtMs: 10 * 24 * hourMs },
  })
  state.nowMs = 10 * 24 * hourMs
  assert.deepEqual(await pass(open()), ['logs/empty'])
  assert.deepEqual([...stored], [])
})
