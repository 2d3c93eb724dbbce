import type { Kysely } from 'kysely'
import type { LeaseStore } from '../domain/lease.ts'
import type { Schema } from './schema.ts'

export function sqlLeaseStore(db: Kysely<Schema>): LeaseStore {
  return {
    async renew({ processId: process_id, node, unreached }, expiresAt) {
      const current = {
        node,
        expires_at: expiresAt.getTime(),
        unreached: unreached && unreached.size > 0 ? JSON.stringify([...unreached]) : null,
      }
      await db
        .insertInto('leases')
        .values({ process_id, ...current })
        .onConflict((conflict) => conflict.column('process_id').doUpdateSet(current))
        .execute()
    },
    async listLive(now) {
      const rows = await db
        .selectFrom('leases')
        .select(['process_id', 'node', 'unreached'])
        .where('expires_at', '>', now.getTime())
        .execute()
      return rows.map(({ process_id, node, unreached }) => ({
        processId: process_id,
        node,
        ...(unreached !== null && { unreached: parseIds(unreached) }),
      }))
    },
    async end(process_id) {
      await db.deleteFrom('leases').where('process_id', '=', process_id).execute()
    },
    async deleteExpiredBefore(time) {
      await db.deleteFrom('leases').where('expires_at', '<', time.getTime()).execute()
    },
  }
}

function parseIds(json: string): ReadonlySet<string> {
  const ids: string[] = JSON.parse(json)
  return new Set(ids)
}
