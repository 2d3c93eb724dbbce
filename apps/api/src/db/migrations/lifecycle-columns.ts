import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Adds the actions at the timeout of a sandbox, and its initial timeout. */
export async function addLifecycle({ schema }: Kysely<Schema>): Promise<void> {
  for (const [name, value] of [
    ['auto_pause', 0],
    ['auto_pause_memory', 1],
    ['auto_resume', 0],
  ] as const) {
    await schema
      .alterTable('sandboxes')
      .addColumn(name, 'integer', (column) => column.notNull().defaultTo(value))
      .execute()
  }
  await schema.alterTable('sandboxes').addColumn('timeout_seconds', 'integer').execute()
}

/** Adds pause and resume: the creator column becomes the holder of any operation. */
export async function addPauses({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').renameColumn('creator', 'holder').execute()
  await schema.alterTable('sandboxes').addColumn('kept', 'text').execute()
}
