import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from './migrate.ts'
import type { Additions, Migration } from './migrate.ts'
import { makeStore } from '../../sim/store.ts'
import { openDatabase } from '../stores.ts'

async function setup() {
  const store = await makeStore('empty')
  const { db, exclusively } = openDatabase(store.location)
  return {
    migrate: (steps: readonly Migration[], additions?: Additions) =>
      exclusively((unhurried) => migrate(unhurried, steps, additions)),
    async tables() {
      const tables = await db.introspection.getTables()
      return tables.map(({ name }) => name).filter((name) => name.length === 1)
    },
    async [Symbol.asyncDispose]() {
      await db.destroy()
      await store[Symbol.asyncDispose]()
    },
  }
}

const makes =
  (table: string): Migration =>
  (db) =>
    db.schema.createTable(table).addColumn('id', 'integer').execute()

test('each step runs once, in order', async () => {
  await using store = await setup()
  await store.migrate([makes('a')])
  await store.migrate([makes('a'), makes('b')])
  await store.migrate([makes('a'), makes('b')])
  assert.deepEqual(await store.tables(), ['a', 'b'])
})

test('when a step fails the store is as it was before all of them', async () => {
  await using store = await setup()
  await store.migrate([makes('a')])
  const fails: Migration = async () => {
    throw new Error('simulated')
  }
  await assert.rejects(store.migrate([makes('a'), makes('b'), fails]), /simulated/)
  assert.deepEqual(await store.tables(), ['a'])
  await store.migrate([makes('a'), makes('b')])
  assert.deepEqual(await store.tables(), ['a', 'b'])
})

test('a store that a newer Atoll has written is refused and left alone', async () => {
  await using store = await setup()
  await store.migrate([makes('a'), makes('b')])
  await assert.rejects(
    store.migrate([makes('a')]),
    /the store has version 2, this Atoll knows up to 1/,
  )
  assert.deepEqual(await store.tables(), ['a', 'b'])
})

test('additions run once each, and an older Atoll still opens the store', async () => {
  await using store = await setup()
  await store.migrate([makes('a')], { b: makes('b') })
  await store.migrate([makes('a')])
  await store.migrate([makes('a')], { c: makes('c'), b: makes('b') })
  assert.deepEqual((await store.tables()).toSorted(), ['a', 'b', 'c'])
})
