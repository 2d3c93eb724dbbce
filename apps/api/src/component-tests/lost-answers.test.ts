/** A statement whose answer is lost, as in a failover of the database, may have been committed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock as clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { silentLogger as log } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { createFleet } from '../app/nodes/fleet.ts'
import { createLoads } from '../app/nodes/loads.ts'
import { createPlacing } from '../app/nodes/placing.ts'
import { createMoveIfNeeded } from '../app/sandboxes/move-sandbox.ts'
import { registerAll } from '../composition/core.ts'
import type { Stores } from '../db/stores.ts'
import type { Sandbox } from '../domain/sandboxes/sandbox.ts'
import { beginResume } from '../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../domain/sandboxes/sandbox-store.ts'
import { connectLink } from '../nodes/connect-link.ts'
import { setUpMoves } from '../sim/moves.ts'

type Moves = Awaited<ReturnType<typeof setUpMoves>>

/** Loses the answer to the first update. */
function loseAnswer(store: SandboxStore, isCommitted: boolean): SandboxStore {
  let isLost = false
  return {
    ...store,
    async update(id, change) {
      if (isLost) return store.update(id, change)
      isLost = true
      if (isCommitted) await store.update(id, change)
      throw new Fault('unavailable', 'store_unavailable', 'The answer of the database was lost')
    },
  }
}

/** Resumes the sandbox of a draining node, and loses the answer to the update that moves it to the other one. */
async function moveAndLoseAnswer(
  { first, second, id }: Moves,
  stores: Stores,
  isCommitted: boolean,
): Promise<Sandbox> {
  const fleet = createFleet({ store: stores.nodes, clock, log })
  for (const { transport } of [first, second]) fleet.add(connectLink(transport))
  await registerAll(fleet)
  const placing = createPlacing({ fleet, loads: createLoads(), store: stores.nodes, clock })
  placing.noteStatus('first', 'draining')
  const store = loseAnswer(stores.sandboxes, isCommitted)
  const claimed = await stores.sandboxes.update(id, (current) => beginResume(current, 'this'))
  assert.ok(claimed)
  return createMoveIfNeeded({ store, fleet, placing, clock })(claimed, false)
}

const isUnavailable = (error: unknown) =>
  error instanceof Fault && error.reason === 'store_unavailable'

test('a move that was committed without an answer starts no second copy', async () => {
  await using moves = await setUpMoves()
  const { api, first, second, id } = moves
  await moves.pause()
  await moves.waitUntilDurable()
  await api.withStores(async (stores) => {
    await assert.rejects(moveAndLoseAnswer(moves, stores, true), isUnavailable)
    const { nodeId, state } = (await stores.sandboxes.find(id)) ?? assert.fail('it is gone')
    assert.deepEqual([nodeId, state], ['second', 'resuming'])
  })
  await waitFor('the reconciler', async () => (await moves.record())?.state === 'paused')
  assert.equal((await moves.resume()).status, 201)
  assert.deepEqual([[...first.running.keys()], [...second.running.keys()]], [[], [id]])
})

test('a draining node resumes a sandbox whose move was not committed', async () => {
  await using moves = await setUpMoves()
  const { api, id } = moves
  await moves.pause()
  await moves.waitUntilDurable()
  await api.withStores(async (stores) => {
    const { nodeId } = await moveAndLoseAnswer(moves, stores, false)
    assert.equal(nodeId, 'first')
    assert.equal((await stores.sandboxes.find(id))?.nodeId, 'first')
  })
})
