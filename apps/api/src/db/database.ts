import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** A store that is open, whatever it is kept in. */
export interface Database {
  readonly db: Kysely<Schema>
  /**
   * Runs `work` while no other process on this store is inside such a call. `work` gets connections of its own, on
   * which statements may take as long as they need.
   */
  exclusively<T>(work: (db: Kysely<Schema>) => Promise<T>): Promise<T>
}
