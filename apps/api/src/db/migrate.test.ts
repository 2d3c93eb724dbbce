import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrate } from './migrate.ts'
import type { Migration } from './migrate.ts'
import { openSqlite } from './sqlite.ts'

async function setup() {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-db-'))
  const db = openSqlite(join(folder, 'atoll.db'))
  const tables = async () =>
    (await db.introspection.getTables()).map(({ name }) => name).filter((name) => name.length === 1)
  return {
    db,
    tables,
    async [Symbol.asyncDispose]() {
      await db.destroy()
      await rm(folder, { recursive: true })
    },
  }
}

const makes =
  (table: string): Migration =>
  (db) =>
    db.schema.createTable(table).addColumn('id', 'integer').execute()

test('each step runs once, in order', async () => {
  await using store = await setup()
  await migrate(store.db, [makes('a')])
  await migrate(store.db, [makes('a'), makes('b')])
  await migrate(store.db, [makes('a'), makes('b')])
  assert.deepEqual(await store.tables(), ['a', 'b'])
})

test('when a step fails the store is as it was before all of them', async () => {
  await using store = await setup()
  await migrate(store.db, [makes('a')])
  const fails: Migration = async () => {
    throw new Error('simulated')
  }
  await assert.rejects(migrate(store.db, [makes('a'), makes('b'), fails]), /simulated/)
  assert.deepEqual(await store.tables(), ['a'])
  await migrate(store.db, [makes('a'), makes('b')])
  assert.deepEqual(await store.tables(), ['a', 'b'])
})

test('a store that a newer Atoll has written is refused and left alone', async () => {
  await using store = await setup()
  await migrate(store.db, [makes('a'), makes('b')])
  await assert.rejects(
    migrate(store.db, [makes('a')]),
    /the store has version 2, this Atoll knows up to 1/,
  )
  assert.deepEqual(await store.tables(), ['a', 'b'])
})
