import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeyRing, newKey } from '@atoll/kit/encryption/key-ring'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { randomHex } from '@atoll/kit/id'
import { memoryFolder } from '@atoll/kit/testing/memory-folder'
import { sql } from 'kysely'
import type { Kysely } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { openDatabase, openStores } from '../db/stores.ts'

/**
 * Store for one test. Tests run on SQLite by default, and on PostgreSQL when `ATOLL_TEST_POSTGRES` names a server; `npm
 * test` does both.
 */
export interface StoreUnderTest extends AsyncDisposable {
  /** Data directory. */
  readonly folder: string
  /** Argument for `openStores` and `openDatabase`. */
  readonly location: string
  readonly isPostgres: boolean
  /** Environment for `loadApiConfig`. */
  readonly env: Readonly<Record<string, string>>
}

/** Keys for a test that neither writes nor reads private values. */
export function unsavedKeys(): KeyRing {
  return createKeyRing([newKey()], async () => {})
}

/** Test option: skips tests of PostgreSQL features on SQLite. */
export const onPostgres = {
  skip: process.env['ATOLL_TEST_POSTGRES'] === undefined && 'runs on PostgreSQL only',
}

/** `empty` has no tables. */
export async function makeStore(how: 'ready' | 'empty' = 'ready'): Promise<StoreUnderTest> {
  const folder = await makeFolder()
  const server = process.env['ATOLL_TEST_POSTGRES']
  const database = server === undefined ? undefined : await makeDatabase(server, how)
  const file = join(folder, 'atoll.db')
  if (!database && how === 'ready') await makeFile(file)
  return {
    folder,
    location: database?.url ?? file,
    isPostgres: database !== undefined,
    env: { ATOLL_DATA_DIR: folder, ...(database && { ATOLL_DATABASE_URL: database.url }) },
    async [Symbol.asyncDispose]() {
      await database?.drop()
      await rm(folder, { recursive: true })
    },
  }
}

/** Returns the same store for a process with another data directory. Requires `isPostgres`. */
export async function shareStore(store: StoreUnderTest): Promise<StoreUnderTest> {
  const folder = await makeFolder()
  return {
    ...store,
    folder,
    env: {
      ...store.env,
      ATOLL_DATA_DIR: folder,
      ATOLL_ENCRYPTION_KEY_FILE: join(store.folder, 'encryption-keys'),
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

function makeFolder(): Promise<string> {
  return mkdtemp(join(memoryFolder(), 'atoll-api-'))
}

/** Copies a file that already has all tables: the migrations take longer than most tests. */
async function makeFile(path: string): Promise<void> {
  await writeFile(path, await (readyFile ??= makeModelFile()), { mode: 0o600 })
}

let readyFile: Promise<Buffer> | undefined

async function makeModelFile(): Promise<Buffer> {
  const folder = await makeFolder()
  const path = join(folder, 'atoll.db')
  try {
    await (await openStores(path, unsavedKeys())).close()
    return await readFile(path)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Copies a database that already has all tables, which is faster than running the migrations. */
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

/** Creates the model database in the first test file; the other files wait. */
async function makeModel(server: string): Promise<string> {
  const name = 'ready'
  const admin = openDatabase(`${server}/postgres`)
  await admin.exclusively(async (db) => {
    const found = await sql`select 1 from pg_database where datname = ${name}`.execute(db)
    if (found.rows.length > 0) return // PostgreSQL cannot copy a database that has connections
    await sql`create database ${sql.id(name)}`.execute(db)
    await (await openStores(`${server}/${name}`, unsavedKeys())).close()
  })
  await admin.db.destroy()
  return name
}

async function administer<T>(server: string, work: (db: Kysely<Schema>) => Promise<T>): Promise<T> {
  const { db } = openDatabase(`${server}/postgres`)
  return work(db).finally(() => db.destroy())
}
