import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** Open store, either SQLite or PostgreSQL. */
export interface Database {
  readonly db: Kysely<Schema>
  /** The same store, for work that no request waits for. PostgreSQL: with few connections of its own. */
  readonly background: Kysely<Schema>
  /**
   * Runs `work` under a lock: only one process of this store at a time is inside `exclusively`. `work` gets separate
   * connections without a statement timeout.
   */
  exclusively<T>(work: (db: Kysely<Schema>) => Promise<T>): Promise<T>
  close(): Promise<void>
  /** Removes deleted content from the files of the store, if they are files of this machine. */
  scrub?(): Promise<void>
  /** Writes a copy of the store to a new file. Absent for PostgreSQL, which has its own tools. */
  copyTo?(path: string): Promise<void>
}
