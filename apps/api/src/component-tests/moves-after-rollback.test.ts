/** Paused sandboxes after a rollback to a release that does not know the object store, and an upgrade. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { sql } from 'kysely'
import { openDatabase } from '../db/stores.ts'
import { lose, setUpMoves } from '../sim/moves.ts'

type Moves = Awaited<ReturnType<typeof setUpMoves>>

/** Does what a resume and a pause of 0.2 do: only the time of the pause changes, and the node names no content. */
async function pauseWithOlderRelease({ api, first, id }: Moves): Promise<void> {
  await api.stop()
  const { db } = openDatabase(api.store.location)
  await sql`update sandboxes set end_at = end_at + 60000 where id = ${id}`.execute(db)
  await db.destroy()
  const { keptGeneration: _generation, keptId: _id, ...content } = first.paused.get(id) ?? fail(id)
  first.revive(id, { ...content, generation: 0 })
}

function fail(id: string): never {
  throw new Error(`the node has no ${id}`)
}

test('content that an older release paused is never replaced by what the object store has', async () => {
  await using fleet = await setUpMoves()
  const { api, first, second, objects, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await pauseWithOlderRelease(fleet)
  assert.equal(objects.size, 1)
  await lose(api, first)
  const refused = await fleet.resume()
  assert.deepEqual([refused.status, /was not uploaded/.test(refused.text)], [503, true])
  assert.equal(second.running.size + second.paused.size, 0)
  first.failAll(undefined)
  await waitFor('the node', async () => (await fleet.resume()).status === 201)
  assert.deepEqual([...first.running.keys()], [id])
})

test('a sandbox that an older release resumed and paused is not resumed by the move before it', async () => {
  await using fleet = await setUpMoves()
  const { api, first, id } = fleet
  await fleet.pause()
  await fleet.waitUntilDurable()
  await pauseWithOlderRelease(fleet)
  const { db } = openDatabase(api.store.location)
  await sql`update sandboxes set move_generation = kept_generation, move_end_at = 1`.execute(db)
  await db.destroy()
  const moving = await api.withStores(({ sandboxes }) => sandboxes.listMoving())
  assert.deepEqual(moving, [])
  assert.ok(first.paused.has(id))
})
