/** A node whose heartbeats are late may still work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { createMembership } from '../app/fleet/membership.ts'
import { manualClock } from '../sim/api.ts'
import { setUpMoves } from '../sim/moves.ts'

/** A sandbox that is paused on the first node and in the object store, while the node counts as silent. */
async function setUpLate(withObjects: readonly ('first' | 'second')[]) {
  const moves = await setUpMoves({ withObjects, isFleet: true })
  await moves.pause()
  await moves.waitUntilDurable()
  await moves.api.withStores(async ({ fleet: store }) => {
    const clock = manualClock()
    const membership = createMembership({ store, clock })
    const { secret } = await membership.createToken('node')
    await membership.join({ secret, role: 'node', id: 'first' })
    const heartbeat = { id: 'first', address: 'host:1', isStarting: true }
    await store.noteHeartbeats([heartbeat], clock.now())
  })
  await waitFor('the suspicion', async () => (await moves.nodeStatus('first')) === 'unhealthy')
  return moves
}

test('a late node that answers resumes what no other node can fetch', async () => {
  await using moves = await setUpLate(['first'])
  assert.equal((await moves.resume()).status, 201)
  assert.deepEqual([...moves.first.running.keys()], [moves.id])
  assert.equal(moves.second.running.size, 0)
})

test('another node that can fetch is preferred', async () => {
  await using moves = await setUpLate(['first', 'second'])
  assert.equal((await moves.resume()).status, 201)
  assert.deepEqual([...moves.second.running.keys()], [moves.id])
})

test('a late node that does not answer leaves the sandbox paused', async () => {
  await using moves = await setUpLate(['first'])
  moves.first.failAll(Code.Unavailable)
  assert.equal((await moves.resume()).status, 503)
  assert.equal((await moves.record())?.state, 'paused')
})
