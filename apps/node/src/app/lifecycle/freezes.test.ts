import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

/** Creates a running sandbox whose runtime cannot thaw it until the test allows it. */
async function setup() {
  const thawing = { isBroken: true, attempts: 0 }
  const node = simulateNode({
    overrides: {
      runtime: {
        async thaw(cellId) {
          thawing.attempts += 1
          if (thawing.isBroken) throw new Error('no answer')
          node.frozen.delete(cellId)
        },
      },
    },
  })
  const { record } = await node.create()
  const phase = () => node.records.get(record.cellId)?.phase
  return { ...node, thawing, cellId: record.cellId, phase }
}

test('an idle sandbox gets exact timers before it is frozen', async () => {
  const calls: string[] = []
  const { create, sandboxes } = simulateNode({
    overrides: {
      runtime: {
        setIdleLevel: (_process, level) => void calls.push(level),
        freeze: async () => void calls.push('freeze'),
      },
    },
  })
  await create()
  calls.length = 0
  await sandboxes.snapshot('i1', 's1')
  assert.deepEqual(calls, ['awake', 'freeze'])
})

test('the thaw of a sandbox is retried with growing delays until it succeeds', async () => {
  const { sandboxes, thawing, clock, frozen, stuck, cellId, phase } = await setup()
  // The snapshot is complete anyway.
  assert.deepEqual(await sandboxes.snapshot('i1', 's1'), { keepsMemory: true, sizeBytes: 7 })
  assert.deepEqual([[...frozen], phase()], [[cellId], 'copying'])
  await sandboxes.retryThaws()
  assert.equal(thawing.attempts, 1)
  for (const [waitMs, attempts] of [
    [250, 2],
    [499, 2],
    [1, 3],
  ] as const) {
    clock.nowMs += waitMs
    await sandboxes.retryThaws()
    assert.equal(thawing.attempts, attempts)
  }
  thawing.isBroken = false
  clock.nowMs += 1000
  await sandboxes.retryThaws()
  assert.deepEqual([[...frozen], phase()], [[], 'running'])
  assert.deepEqual(
    stuck.map((line) => line.replace(`${cellId} `, '')),
    ['for 250', 'for 500', 'for 1000', 'thawed'],
  )
  clock.nowMs += 100_000
  await sandboxes.retryThaws()
  assert.equal(thawing.attempts, 4)
})

test('the waits between attempts end growing', async () => {
  const { sandboxes, clock, stuck } = await setup()
  await sandboxes.snapshot('i1', 's1')
  for (let attempt = 0; attempt < 20; attempt += 1) {
    clock.nowMs += 30_000
    await sandboxes.retryThaws()
  }
  assert.match(stuck.at(-1) ?? '', / for 30000$/)
  assert.equal(stuck.length, 21)
})

test('a sandbox that is gone is not tried any more', async () => {
  const { sandboxes, thawing, clock, alive } = await setup()
  await sandboxes.snapshot('i1', 's1')
  alive.clear()
  await sandboxes.removeDead()
  clock.nowMs += 100_000
  await sandboxes.retryThaws()
  assert.equal(thawing.attempts, 1)
})

test('a stuck sandbox cannot be copied, but can be paused without memory or killed', async () => {
  const { sandboxes, thawing, create, frozen } = await setup()
  await sandboxes.snapshot('i1', 's1')
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), {
    reason: 'sandbox_stands_still',
  })
  await sandboxes.pause('i1', { keepMemory: false })
  await create({ sandboxId: 'i2' })
  await sandboxes.snapshot('i2', 's2')
  await sandboxes.kill('i2')
  thawing.isBroken = false
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.settle()
  assert.equal(frozen.size, 0)
})

test('a copy of a stuck sandbox thaws it first', async () => {
  const { sandboxes, thawing, frozen, phase } = await setup()
  await sandboxes.snapshot('i1', 's1')
  thawing.isBroken = false
  await sandboxes.snapshot('i1', 's2')
  assert.deepEqual([frozen.size, phase()], [0, 'running'])
})

test('new network rules do not hide a stuck sandbox from the next agent', async () => {
  const { sandboxes, thawing, clock, records, cellId, phase } = await setup()
  await sandboxes.snapshot('i1', 's1')
  const network = { allowOut: [], denyOut: ['9.9.9.9'] }
  await sandboxes.setNetwork('i1', network)
  assert.equal(phase(), 'copying')
  thawing.isBroken = false
  clock.nowMs += 1000
  await sandboxes.retryThaws()
  assert.deepEqual([phase(), records.get(cellId)?.owner?.network], ['running', network])
})

test('a pause of a stopped process is refused at once, and works after SIGCONT', async () => {
  const { sandboxes, thawing, stopped, stuck, cellId, phase } = await setup()
  stopped.add(cellId)
  const refusal = { kind: 'invalid', reason: 'sandbox_stopped' }
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), refusal)
  await assert.rejects(sandboxes.snapshot('i1', 's1'), refusal)
  // No thaw is tried: its command would wait for the stopped process too.
  assert.deepEqual([thawing.attempts, stuck, phase()], [0, [], 'running'])
  stopped.clear()
  await sandboxes.pause('i1', { keepMemory: true })
  assert.equal(phase(), 'paused')
})

test('a kill does not wait for a pause that waits for the sandbox', async () => {
  const node = simulateNode({
    overrides: {
      runtime: {
        // Behaves like runsc: waits for the process, and fails once the process is gone.
        freeze: () =>
          waitFor('the end of the process', () => node.alive.size === 0).then(() => {
            throw new Error('connection reset')
          }),
      },
    },
  })
  await node.create()
  const pausing = node.sandboxes.pause('i1', { keepMemory: true })
  const refused = assert.rejects(pausing, /connection reset/)
  await node.sandboxes.kill('i1')
  await refused
  assert.deepEqual([node.records.size, node.sandboxes.get('i1')], [0, undefined])
})
