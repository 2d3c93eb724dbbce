import { sql } from 'kysely'
import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Adds the IDs of all snapshots and built templates that ever had a record. IDs of an older release are missing: their
 * files stay on the node when they are deleted, and are reported.
 */
export async function addIssuedFiles(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('issued_files')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('unused_since', 'bigint')
    .execute()
  await sql`insert into issued_files (id)
    select node_template_id from template_builds where node_template_id is not null
    union select id from snapshots`.execute(db)
}
