import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { makeStore, unsavedKeys } from '../../sim/store.ts'
import { openDatabase, openStores } from '../stores.ts'
import { selectMoving } from './sandbox-queries.ts'

test('the list of moves reads an index of the moves, and not all paused sandboxes', async (t) => {
  await using place = await makeStore()
  // PostgreSQL chooses by the number of rows, and there are none.
  if (place.isPostgres) return t.skip('reads a plan of SQLite')
  await (await openStores(place.location, unsavedKeys())).close()
  const { db } = openDatabase(place.location)
  try {
    const plan = await selectMoving(db).explain(undefined, sql`query plan`)
    assert.match(JSON.stringify(plan), /USING INDEX sandboxes_moving/)
  } finally {
    await db.destroy()
  }
})
