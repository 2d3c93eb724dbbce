import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Adds moves of running sandboxes off drained nodes. An older release leaves the columns as they are. A move that it finds
 * half done stays paused; its generation does not match a later pause.
 */
export async function addMoves({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .alterTable('nodes')
    .addColumn('moves_sandboxes', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await schema.alterTable('sandboxes').addColumn('move_generation', 'integer').execute()
  await schema.alterTable('sandboxes').addColumn('move_end_at', 'bigint').execute()
  await schema.alterTable('sandboxes').addColumn('move_problem', 'text').execute()
}

/** Adds an index for the moves that are underway, which every api lists every few seconds. */
export async function addMoveIndex({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createIndex('sandboxes_moving')
    .on('sandboxes')
    .columns(['state', 'move_end_at'])
    .where('move_end_at', 'is not', null)
    .execute()
}

/** Adds when the next attempt of a move may begin. Without a time, which older releases leave, it may begin at once. */
export async function addMoveRetries({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('move_retry_at', 'bigint').execute()
}
