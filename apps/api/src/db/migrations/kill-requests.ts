import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Adds whether a client or an operator asked for the end of a sandbox. Only the reason shows that in existing rows. An older
 * release does not write the column, so paused sandboxes that it was asked to delete while their node was away are kept.
 */
export async function addKillRequests(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .alterTable('sandboxes')
    .addColumn('kill_requested', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await db
    .updateTable('sandboxes')
    .set({ kill_requested: 1 })
    .where('end_reason', 'in', ['was killed', 'was killed by an operator'])
    .execute()
}
