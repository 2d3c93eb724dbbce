import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChangeList } from '../../domain/sandboxes/changes.ts'
import { withInspections } from '../lifecycle/inspections.ts'
import { createKeyedQueue } from '../lifecycle/keyed-queue.ts'
import type { InspectedCell } from '../lifecycle/sandboxes.ts'
import { createChanges } from './changes.ts'

const { signal } = new AbortController()
const query = { path: Buffer.from('/'), limit: 10 }
const nothing: ChangeList = { changes: [], isComplete: true }

test('inspections that wait for a busy sandbox keep no other one waiting', async () => {
  const { changes, queue } = setup()
  const paused = Promise.withResolvers<void>()
  const pause = queue.run('busy', () => paused.promise)
  const waiting = Array.from({ length: 5 }, () => changes.list('busy', query, signal))
  await assert.rejects(changes.list('busy', query, signal), { reason: 'inspections_busy' })
  assert.equal(await changes.list('other', query, signal), nothing)
  paused.resolve()
  await Promise.all([pause, ...waiting])
})

test('an inspection that waits for its turn on the node ends at once when it is interrupted', async () => {
  const slow = Promise.withResolvers<void>()
  const { changes, queue, started } = setup(slow.promise)
  const running = ['a', 'b', 'c', 'd'].map((id) => changes.list(id, query, signal))
  const caller = new AbortController()
  const interrupted = assert.rejects(changes.list('e', query, signal), {
    reason: 'inspection_interrupted',
  })
  const left = assert.rejects(changes.list('f', query, caller.signal), { name: 'AbortError' })
  // The queues start their tasks in later ticks.
  await new Promise(setImmediate)
  caller.abort()
  await queue.run('e', async () => {})
  await Promise.all([interrupted, left])
  slow.resolve()
  await Promise.all(running)
  assert.equal(await changes.list('e', query, signal), nothing)
  assert.equal(started.length, 5)
})

function setup(slow: Promise<void> = Promise.resolve()) {
  const queue = withInspections(createKeyedQueue())
  const started: string[] = []
  const changes = createChanges({
    sandboxes: {
      inspect: (id, task, ended) => queue.inspect(id, (any) => task(cellOf(id), any), ended),
    },
    ports: {
      async list({ record }) {
        started.push(record.cellId)
        await slow
        return nothing
      },
      read: async () => undefined,
    },
  })
  return { changes, queue, started }
}

function cellOf(cellId: string): InspectedCell {
  const shape = { templateId: 'base', cpuCount: 1, memoryMb: 256, diskSizeMb: 64 }
  const parts = { runtime: 'gvisor', layer: 'l1', envd: 'e1', initToken: 't' } as const
  const record = { ...shape, ...parts, cellId, phase: 'running', disk: 'disk.img' } as const
  return { record, isMounted: true }
}
