import type { Kysely } from 'kysely'
import { nodeStatuses, toWanted } from '../domain/node-status.ts'
import type { NodeStatusStore, WantedStatus } from '../domain/node-status.ts'
import type { Schema } from './schema.ts'

export function sqlNodeStatusStore(db: Kysely<Schema>): NodeStatusStore {
  return {
    async find(nodeId) {
      const query = db.selectFrom('nodes').selectAll().where('id', '=', nodeId)
      const row = await query.executeTakeFirst()
      return row && { status: fromText(row.status), since: new Date(row.status_changed_at) }
    },
    async set(id, status, now) {
      const current = { status, status_changed_at: now.getTime() }
      await db
        .insertInto('nodes')
        .values({ id, ...current })
        .onConflict((conflict) => conflict.column('id').doUpdateSet(current))
        .execute()
    },
  }
}

function fromText(text: string): WantedStatus {
  const status = nodeStatuses.find((known) => known === text)
  if (status) return toWanted(status)
  throw new Error(`the store holds a node in the unknown status ${text}`)
}
