import type { Kysely } from 'kysely'
import type { LeaseStore } from '../domain/lease.ts'
import type { Schema } from './schema.ts'

export function sqlLeaseStore(db: Kysely<Schema>): LeaseStore {
  return {
    async renew({ processId: process_id, node }, expiresAt) {
      const expires_at = expiresAt.getTime()
      await db
        .insertInto('leases')
        .values({ process_id, node, expires_at })
        .onConflict((conflict) => conflict.column('process_id').doUpdateSet({ node, expires_at }))
        .execute()
    },
    async listLive(now) {
      const rows = await db
        .selectFrom('leases')
        .select(['process_id', 'node'])
        .where('expires_at', '>', now.getTime())
        .execute()
      return rows.map(({ process_id, node }) => ({ processId: process_id, node }))
    },
    async end(process_id) {
      await db.deleteFrom('leases').where('process_id', '=', process_id).execute()
    },
    async deleteExpiredBefore(time) {
      await db.deleteFrom('leases').where('expires_at', '<', time.getTime()).execute()
    },
  }
}
