/** A reconcile pass writes nothing when it changes nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { reconcileSandboxes } from '../app/sandboxes/reconcile.ts'
import type { OnNode } from '../domain/sandboxes/sandbox-pause.ts'
import { openStores } from '../db/stores.ts'
import { setUpMoves } from '../sim/moves.ts'
import { unsavedKeys } from '../sim/store.ts'

const unused = () => assert.fail('not needed')
const ending = {
  ...{ begin: unused, finish: unused, kill: unused },
  ...{ tryFinish: unused, ended: unused, settle: unused },
}

/** Runs a pass for the first node, which has the sandbox in this state. Returns the number of statements that write. */
async function countWrites(
  { api, id }: Awaited<ReturnType<typeof setUpMoves>>,
  onNode: OnNode,
): Promise<number> {
  await api.stop()
  let writes = 0
  const stores = await openStores(api.store.location, unsavedKeys(), ({ kind }) => {
    if (kind === 'update' || kind === 'insert') writes += 1
  })
  writes = 0
  const node = { id: 'first', sandboxes: { list: async () => new Map(onNode && [[id, onNode]]) } }
  const { sandboxes: store, leases } = stores
  const ports = { store, leases, ending, settle: unused, onUnknown: unused, clock: systemClock }
  const own = { processId: 'this', isUnderway: () => false }
  try {
    await reconcileSandboxes({ ...ports, ...own }, node, new AbortController().signal)
  } finally {
    await stores.close()
  }
  return writes
}

test('a pass writes nothing for a sandbox in the object store that its node has lost', async () => {
  await using moves = await setUpMoves()
  await moves.pause()
  await moves.waitUntilDurable()
  assert.equal(await countWrites(moves, undefined), 0)
})

test('a pass writes nothing for a sandbox with newer content in the object store than on its node', async () => {
  await using moves = await setUpMoves()
  await moves.pause()
  assert.equal((await moves.resume()).status, 201)
  await moves.pause()
  await moves.waitUntilDurable()
  const older = { state: 'paused', kept: 'memory', generation: 1 } as const
  assert.equal(await countWrites(moves, { ...older, keptGeneration: 1, keptId: 'older' }), 0)
})

test('an update that returns the record as it is writes nothing', async () => {
  await using moves = await setUpMoves()
  const { api, id } = moves
  await api.stop()
  const kinds: string[] = []
  const stores = await openStores(api.store.location, unsavedKeys(), ({ kind }) => kinds.push(kind))
  kinds.length = 0
  assert.equal((await stores.sandboxes.update(id, (current) => current))?.id, id)
  await stores.sandboxes.update(id, (current) => ({ ...current }))
  await stores.close()
  assert.equal(kinds.filter((kind) => kind === 'update').length, 1)
})
