import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomHex } from '@atoll/kit/id'
import { sql } from 'kysely'
import type { Kysely } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { openDatabase, openStores } from '../db/stores.ts'

/**
 * A store for one test. Every test that uses this runs on both: on SQLite by itself, and on PostgreSQL when
 * `ATOLL_TEST_POSTGRES` names a server, as `npm test` does in its turn.
 */
export interface StoreUnderTest extends AsyncDisposable {
  /** A data directory. */
  readonly folder: string
  /** For `openStores` and `openDatabase`. */
  readonly location: string
  readonly isPostgres: boolean
  /** For `loadApiConfig`. */
  readonly env: Readonly<Record<string, string>>
}

/** For tests of what only PostgreSQL has. */
export const onPostgres = {
  skip: process.env['ATOLL_TEST_POSTGRES'] === undefined && 'runs on PostgreSQL only',
}

/** `empty` is without tables. */
export async function makeStore(how: 'ready' | 'empty' = 'ready'): Promise<StoreUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-api-'))
  const server = process.env['ATOLL_TEST_POSTGRES']
  const database = server === undefined ? undefined : await makeDatabase(server, how)
  return {
    folder,
    location: database?.url ?? join(folder, 'atoll.db'),
    isPostgres: database !== undefined,
    env: { ATOLL_DATA_DIR: folder, ...(database && { ATOLL_DATABASE_URL: database.url }) },
    async [Symbol.asyncDispose]() {
      await database?.drop()
      await rm(folder, { recursive: true })
    },
  }
}

/** The same records for a process with a data directory of its own: possible where `isPostgres`. */
export async function shareStore(store: StoreUnderTest): Promise<StoreUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-api-'))
  return {
    ...store,
    folder,
    env: { ...store.env, ATOLL_DATA_DIR: folder },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

/** Copied from one that has all tables already: that is faster than to make them again. */
async function makeDatabase(server: string, how: 'ready' | 'empty') {
  const name = `test_${randomHex(8)}`
  const model = how === 'empty' ? 'template0' : await (ready ??= makeModel(server))
  await administer(server, (db) =>
    sql`create database ${sql.id(name)} template ${sql.id(model)}`.execute(db),
  )
  return {
    url: `${server}/${name}`,
    drop: () =>
      administer(server, (db) => sql`drop database ${sql.id(name)} with (force)`.execute(db)),
  }
}

let ready: Promise<string> | undefined

/** The first of all test files makes it; the others wait meanwhile. */
async function makeModel(server: string): Promise<string> {
  const name = 'ready'
  const admin = openDatabase(`${server}/postgres`)
  await admin.exclusively(async (db) => {
    const found = await sql`select 1 from pg_database where datname = ${name}`.execute(db)
    if (found.rows.length > 0) return // nobody may be connected to it while it is copied
    await sql`create database ${sql.id(name)}`.execute(db)
    await (await openStores(`${server}/${name}`)).close()
  })
  await admin.db.destroy()
  return name
}

async function administer<T>(server: string, work: (db: Kysely<Schema>) => Promise<T>): Promise<T> {
  const { db } = openDatabase(`${server}/postgres`)
  return work(db).finally(() => db.destroy())
}
