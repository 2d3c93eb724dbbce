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

test('visits of another process are left out until they are of this one, except after a nudge', async () => {
  let isMine = false
  let visits = 0
  const visit = async () => {
    visits += 1
    return 600_000
  }
  const parts = { fleet: { size: () => 1 }, log: silentLogger, isMine: () => isMine }
  await using stack = new AsyncDisposableStack()
  const loop = startVisits('test', visit, parts)
  stack.defer(() => loop.close())
  await loop.first
  assert.equal(visits, 0)
  loop.nudge()
  await waitFor('the visit after the nudge', () => visits === 1)

  const other = startVisits('test', visit, parts)
  stack.defer(() => other.close())
  await other.first
  assert.equal(visits, 1)
  isMine = true
  await waitFor('the visit of this process', () => visits === 2)
})
