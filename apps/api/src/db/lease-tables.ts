import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** Several processes may share a store: each says that it lives, and which sandboxes it is making. */
export async function addLeases({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable('leases')
    .addColumn('process_id', 'text', (column) => column.primaryKey())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema.alterTable('sandboxes').addColumn('creator', 'text').execute()
}
