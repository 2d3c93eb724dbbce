import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Adds what is in the object store: builds, and the content of paused sandboxes. Older releases ignore the columns, so a
 * generation that they leave behind never matches a later pause.
 */
export async function addDurability({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .alterTable('template_builds')
    .addColumn('is_durable', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await schema.alterTable('sandboxes').addColumn('kept_generation', 'integer').execute()
  await schema.alterTable('sandboxes').addColumn('durable_generation', 'integer').execute()
}

/** Adds the random ID of a pause. A release that ignores the column leaves an ID that its next pause does not have. */
export async function addPauseIds({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('kept_id', 'text').execute()
}

/**
 * Adds the time for which the columns about the kept content hold: a release that ignores them changes the time of the pause
 * alone, and would leave the content of an earlier pause. Existing rows are believed: nothing shows which release wrote them.
 */
export async function addKeptTimes(db: Kysely<Schema>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('kept_end_at', 'bigint').execute()
  await db
    .updateTable('sandboxes')
    .set((set) => ({ kept_end_at: set.ref('end_at') }))
    .where('kept_generation', 'is not', null)
    .execute()
}

/** Adds which sandboxes may have objects in the object store, also after their end. */
export async function addStoredGenerations({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('stored_generation', 'integer').execute()
  await schema
    .createIndex('sandboxes_with_objects')
    .on('sandboxes')
    .columns(['state', 'stored_generation'])
    .where('stored_generation', 'is not', null)
    .execute()
}
