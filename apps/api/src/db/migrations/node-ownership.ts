import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Adds the node of each sandbox, snapshot and build, the generation of sandboxes, and what nodes say of themselves. Rows
 * without a node belong to the only node that there was: it claims them when it registers. Older releases write such
 * rows too.
 */
export async function addNodeOwnership({ schema }: Kysely<Schema>): Promise<void> {
  for (const table of ['sandboxes', 'snapshots', 'template_builds'] as const) {
    await schema.alterTable(table).addColumn('node_id', 'text').execute()
  }
  await schema
    .alterTable('sandboxes')
    .addColumn('generation', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await schema
    .createIndex('sandboxes_of_node')
    .on('sandboxes')
    .columns(['node_id', 'state'])
    .execute()
  for (const [name, type] of [
    ['epoch', 'integer'],
    ['instance_id', 'text'],
    ['address', 'text'],
    ['facts', 'text'],
    ['usage', 'text'],
    ['seen_at', 'bigint'],
  ] as const) {
    await schema.alterTable('nodes').addColumn(name, type).execute()
  }
}
