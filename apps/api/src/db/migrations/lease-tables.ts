import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Lets several processes share a store: adds leases, and the process that creates a sandbox. */
export async function addLeases({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable('leases')
    .addColumn('process_id', 'text', (column) => column.primaryKey())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema.alterTable('sandboxes').addColumn('creator', 'text').execute()
}

/** Adds the nodes that a process does not reach. An older release leaves the column empty. */
export async function addUnreached({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('leases').addColumn('unreached', 'text').execute()
}
