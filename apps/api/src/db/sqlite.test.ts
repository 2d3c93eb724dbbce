import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { sql } from 'kysely'
import { makeStore } from '../sim/store.ts'
import { openSqlite } from './sqlite.ts'

test('a full disk is reported as such, not as a failed rollback', async () => {
  await using store = await makeStore('empty')
  const { db } = openSqlite(`${store.folder}/own.db`)
  try {
    await sql`create table things (text text)`.execute(db)
    // SQLite reports this limit as a full disk.
    await sql`pragma max_page_count = 8`.execute(db)
    const fill = () =>
      db.transaction().execute(async (transaction) => {
        for (let row = 0; row < 100; row += 1) {
          await sql`insert into things values (${'x'.repeat(4000)})`.execute(transaction)
        }
      })
    await assert.rejects(fill, (error) => {
      assert.ok(error instanceof Fault)
      assert.deepEqual([error.kind, error.reason], ['unavailable', 'disk_full'])
      assert.match(String(Object(error.cause).message), /full/)
      return true
    })
    const { rows } = await sql`select count(*) as count from things`.execute(db)
    assert.equal(Object(rows[0]).count, 0)
    await db.transaction().execute((again) => sql`insert into things values ('y')`.execute(again))
  } finally {
    await db.destroy()
  }
})
