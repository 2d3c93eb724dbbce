import type { Kysely, Transaction } from 'kysely'
import type { IssuedFiles } from '../domain/issued-files.ts'
import { batches } from './batches.ts'
import type { Schema } from './schema.ts'

/** Call in the transaction that writes the record. */
export async function issueFiles(db: Transaction<Schema>, id: string): Promise<void> {
  await db
    .insertInto('issued_files')
    .values({ id, unused_since: null })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export function sqlIssuedFiles(db: Kysely<Schema>): IssuedFiles {
  return {
    async among(ids) {
      const found = new Set<string>()
      for (const batch of batches(ids)) {
        const query = db.selectFrom('issued_files').select('id').where('id', 'in', batch)
        for (const { id } of await query.execute()) found.add(id)
      }
      return found
    },
    async forgetUnused(now, time) {
      await db
        .updateTable('issued_files')
        .set({ unused_since: now.getTime() })
        .where('unused_since', 'is', null)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('snapshots')
                .select('snapshots.id')
                .whereRef('snapshots.id', '=', 'issued_files.id'),
            ),
          ),
        )
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('template_builds')
                .select('template_builds.id')
                .whereRef('template_builds.node_template_id', '=', 'issued_files.id'),
            ),
          ),
        )
        .execute()
      await db.deleteFrom('issued_files').where('unused_since', '<', time.getTime()).execute()
    },
  }
}
