import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Adds the state of running and failed builds, and build logs. */
export async function addBuilds({ schema }: Kysely<Schema>): Promise<void> {
  for (const column of ['holder', 'failure', 'failed_step'] as const) {
    await schema.alterTable('template_builds').addColumn(column, 'text').execute()
  }
  await schema
    .createIndex('template_builds_in_status')
    .on('template_builds')
    .columns(['status', 'created_at'])
    .execute()
  await schema.createIndex('template_builds_held').on('template_builds').column('holder').execute()
  await schema
    .createIndex('template_builds_on_node')
    .on('template_builds')
    .column('node_template_id')
    .execute()
  await schema
    .createTable('build_logs')
    .addColumn('build_id', 'text', (column) =>
      column.notNull().references('template_builds.id').onDelete('cascade'),
    )
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('level', 'integer', (column) => column.notNull())
    .addColumn('step', 'text', (column) => column.notNull())
    .addColumn('message', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('build_logs_key', ['build_id', 'position'])
    .execute()
}
