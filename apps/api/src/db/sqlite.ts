import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import type { SQLInputValue, StatementSync } from 'node:sqlite'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import { Kysely, SqliteDialect } from 'kysely'
import type { KyselyPlugin, SqliteDatabase, SqliteStatement } from 'kysely'
import type { Database } from './database.ts'
import { reportTo } from './query-record.ts'
import type { OnQuery } from './query-record.ts'
import type { Schema } from './schema.ts'
import { unstorableText } from './unstorable-text.ts'

/**
 * Opens the embedded store; all SQLite code is in this file. One process at a time can open the file, by a lock that
 * the kernel releases when the process exits: two servers on one store would each delete the sandboxes of the other as
 * orphaned.
 */
export function openSqlite(path: string, onQuery?: OnQuery): Database {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600) // SQLite copies this mode to its other files
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs })
  try {
    prepare(database, path)
  } catch (error) {
    database.close()
    throw error
  }
  const db = new Kysely<Schema>({
    dialect: new SqliteDialect({ database: adapt(database) }),
    plugins: [withoutRowLocks],
    ...(onQuery && { log: reportTo(onQuery) }),
  })
  return {
    db,
    background: db,
    close: () => db.destroy(),
    exclusively: (work) => work(db),
    // Free pages and the write-ahead log still hold what was overwritten.
    scrub: async () => database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'),
    // Holds the only connection: SQLite refuses to copy a store while a transaction of the same connection is open.
    copyTo: (to) => db.connection().execute(() => copyDatabase(database, to)),
  }
}

/** Copies the store of a data directory without a server. Does not migrate it, and fails while a server uses it. */
export async function copySqliteFile(from: string, to: string): Promise<void> {
  const database = new DatabaseSync(from, { timeout: busyTimeoutMs })
  try {
    prepare(database, from)
    await copyDatabase(database, to)
  } finally {
    database.close()
  }
}

async function copyDatabase(database: DatabaseSync, to: string): Promise<void> {
  closeSync(openSync(to, 'wx', 0o600))
  await backup(database, to, { rate: pagesPerStep })
}

/** 16 MiB of pages: between two steps the event loop serves everything but the store. */
const pagesPerStep = 4096

/**
 * Removes `for update`, which SQLite does not support. A transaction has exclusive access to the whole store anyway.
 */
const withoutRowLocks: KyselyPlugin = {
  transformQuery({ node }) {
    if (node.kind !== 'SelectQueryNode') return node
    const { endModifiers: _, ...rest } = node
    return rest
  },
  transformResult: async ({ result }) => result,
}

const busyTimeoutMs = 5_000
const sqliteBusy = 5
const sqliteFull = 13

function prepare(database: DatabaseSync, path: string): void {
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    database.exec('PRAGMA journal_mode = WAL')
    // FULL: a power failure must not lose a key that was shown once. Costs one sync per commit.
    database.exec('PRAGMA synchronous = FULL')
    database.exec('PRAGMA foreign_keys = ON')
    database.exec('BEGIN EXCLUSIVE; COMMIT')
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy) {
      throw new Error(`the store ${path} is in use by another Atoll process; stop that one first`, {
        cause: error,
      })
    }
    throw error
  }
}

/** Adapts the database to the interface of better-sqlite3, which Kysely expects. */
function adapt(database: DatabaseSync): SqliteDatabase {
  const prepared = new Map<string, SqliteStatement>()
  return {
    close: () => database.close(),
    prepare(sql) {
      const known = prepared.get(sql)
      if (known) return known
      const statement = isRollback(sql)
        ? rollbackOf(database, sql)
        : toStatement(database.prepare(sql))
      if (prepared.size >= maxPrepared) prepared.clear()
      prepared.set(sql, statement)
      return statement
    },
  }
}

/** Bounds the cache: statements that differ only in the length of a list have different texts. */
const maxPrepared = 500

function toStatement(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (values) => explained(() => statement.all(...values.map(toInput))),
    run: (values) => explained(() => statement.run(...values.map(toInput))),
    iterate: (values) => explained(() => statement.iterate(...values.map(toInput))),
  }
}

function isRollback(sql: string): boolean {
  return sql.trim().toLowerCase() === 'rollback'
}

/**
 * Skips the rollback after errors such as a full disk, where SQLite has already rolled back. A second rollback would
 * fail and hide the original error.
 */
function rollbackOf(database: DatabaseSync, sql: string): SqliteStatement {
  const statement = toStatement(database.prepare(sql))
  return {
    ...statement,
    run: (values) =>
      database.isTransaction ? statement.run(values) : { changes: 0, lastInsertRowid: 0 },
  }
}

function explained<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error && 'errcode' in error && error.errcode === sqliteFull)) throw error
    const message =
      'Not enough disk space on the node: the store cannot be written. Delete sandboxes or snapshots.'
    throw new Fault('unavailable', diskFull, message, { cause: error })
  }
}

function toInput(value: unknown): SQLInputValue {
  if (typeof value === 'string' && value.includes('\0')) throw unstorableText()
  if (value === null || typeof value === 'string' || typeof value === 'number') return value
  throw new TypeError(`a ${typeof value} cannot be stored: rows are made of text, numbers and null`)
}
