import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Adds the sandbox that a copy was made of, and the history of each sandbox. */
export async function addLineage({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('parent_id', 'text').execute()
  await schema.alterTable('sandboxes').addColumn('parent_kind', 'text').execute()
  await schema
    .createIndex('sandboxes_of_parent')
    .on('sandboxes')
    .columns(['parent_id', 'created_at'])
    .execute()
  await schema
    .createTable('sandbox_events')
    .addColumn('sandbox_id', 'text', (column) =>
      column.notNull().references('sandboxes.id').onDelete('cascade'),
    )
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .execute()
  await schema
    .createIndex('sandbox_events_of_sandbox')
    .on('sandbox_events')
    .columns(['sandbox_id', 'at'])
    .execute()
}
