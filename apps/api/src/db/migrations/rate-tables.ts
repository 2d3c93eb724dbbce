import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Adds the current window of each rate limit, which several apis share. Older releases count by themselves. */
export async function addRateWindows({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable('rate_windows')
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('operation', 'text', (column) => column.notNull())
    .addColumn('requests', 'bigint', (column) => column.notNull())
    .addColumn('seconds', 'bigint', (column) => column.notNull())
    .addColumn('ends_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('rate_windows_key', ['team_id', 'operation'])
    .execute()
}
