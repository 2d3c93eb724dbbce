import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { startVisits } from './visits.ts'

function setup({ nodes, isUrgent = false }: { nodes: number; isUrgent?: boolean }) {
  let visits = 0
  const visit = async () => {
    visits += 1
    return 600_000
  }
  const parts = { fleet: { size: () => nodes }, log: silentLogger, isUrgent }
  const loop = startVisits('test', visit, parts)
  return { loop, visits: () => visits, [Symbol.asyncDispose]: () => loop.close() }
}

test('the first visit begins at once in a small fleet, and in a large one if it is urgent', async () => {
  for (const fleet of [{ nodes: 50 }, { nodes: 1_000, isUrgent: true }]) {
    await using started = setup(fleet)
    await started.loop.first
    assert.equal(started.visits(), 1)
  }
})

test('the first visit waits in a large fleet, and a nudge begins it', async () => {
  await using started = setup({ nodes: 1_000_000 })
  await started.loop.first
  assert.equal(started.visits(), 0)
  started.loop.nudge()
  await waitFor('the first visit', () => started.visits() === 1)
})
