import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** Samples over time. Theirs are Unix seconds, not milliseconds: `at` is where the 5 seconds of a sample begin. */
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
  // Starts are counted from the records, by time alone.
  await schema.createIndex('sandboxes_started').on('sandboxes').column('started_at').execute()

  // Without a reference to the sandbox: samples go by age, before the record does, and never by the thousand with it.
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
