import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Adds metric samples. `at` is the start of the 5-second window in Unix seconds, not milliseconds. */
export async function addMetrics({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable('team_metrics')
    .addColumn('team_id', 'text', (column) =>
      column.notNull().references('teams.id').onDelete('cascade'),
    )
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('concurrent', 'integer', (column) => column.notNull())
    .addColumn('started', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('team_metrics_key', ['team_id', 'at'])
    .execute()
  await schema.createIndex('team_metrics_at').on('team_metrics').column('at').execute()
  // Index for counting starts, which filters by time only.
  await schema.createIndex('sandboxes_started').on('sandboxes').column('started_at').execute()

  // No foreign key to sandboxes: samples expire by age before the record, so that deleting a record never cascades to
  // thousands of rows.
  await schema
    .createTable('sandbox_metrics')
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('cpu_count', 'integer', (column) => column.notNull())
    .addColumn('cpu_used_percent', 'double precision', (column) => column.notNull())
    .addColumn('memory_used_bytes', 'bigint', (column) => column.notNull())
    .addColumn('memory_cache_bytes', 'bigint', (column) => column.notNull())
    .addColumn('memory_total_bytes', 'bigint', (column) => column.notNull())
    .addColumn('disk_used_bytes', 'bigint', (column) => column.notNull())
    .addColumn('disk_total_bytes', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('sandbox_metrics_key', ['sandbox_id', 'at'])
    .execute()
  await schema.createIndex('sandbox_metrics_at').on('sandbox_metrics').column('at').execute()
}
