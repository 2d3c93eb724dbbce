import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** What is to happen at the end of a sandbox's time, and the time it was created with. */
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

/** Sandboxes can be paused and resumed, and a process may be at other things than their creation. */
export async function addPauses({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').renameColumn('creator', 'holder').execute()
  await schema.alterTable('sandboxes').addColumn('kept', 'text').execute()
}
