import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** Open store, either SQLite or PostgreSQL. */
export interface Database {
  readonly db: Kysely<Schema>
  /**
   * Runs `work` while no other process on this store is inside such a call. `work` gets separate connections without a
   * statement timeout.
   */
  exclusively<T>(work: (db: Kysely<Schema>) => Promise<T>): Promise<T>
}
