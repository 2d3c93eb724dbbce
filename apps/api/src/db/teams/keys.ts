import type { Kysely } from 'kysely'
import type { ApiKey, KeyStore, Mask } from '../../domain/teams/key.ts'
import type { ApiKeyRow, Schema } from '../schema.ts'

export function sqlKeyStore(db: Kysely<Schema>): KeyStore {
  return {
    async insert(key, hash) {
      await db.insertInto('api_keys').values(toKeyRow(key, hash)).execute()
    },
    async list(teamId) {
      const rows = await db
        .selectFrom('api_keys')
        .leftJoin('users', 'users.id', 'api_keys.created_by')
        .selectAll('api_keys')
        .select('users.email')
        .where('team_id', '=', teamId)
        .orderBy('api_keys.created_at')
        .orderBy('api_keys.id')
        .execute()
      return rows.map(fromRow)
    },
    async rename(teamId, id, name) {
      const { numUpdatedRows } = await db
        .updateTable('api_keys')
        .set({ name })
        .where('team_id', '=', teamId)
        .where('id', '=', id)
        .executeTakeFirst()
      return numUpdatedRows > 0n
    },
    async delete(teamId, id) {
      const { numDeletedRows } = await db
        .deleteFrom('api_keys')
        .where('team_id', '=', teamId)
        .where('id', '=', id)
        .executeTakeFirst()
      return numDeletedRows > 0n
    },
    async findByHash(hash) {
      const row = await db
        .selectFrom('api_keys')
        .select(['id', 'team_id'])
        .where('hash', '=', hash)
        .executeTakeFirst()
      return row && { id: row.id, teamId: row.team_id }
    },
    async recordUse(id, now) {
      await db
        .updateTable('api_keys')
        .set({ last_used_at: now.getTime() })
        .where('id', '=', id)
        .execute()
    },
  }
}

export function toKeyRow(key: ApiKey, hash: string): ApiKeyRow {
  return {
    id: key.id,
    team_id: key.teamId,
    name: key.name,
    hash,
    mask: JSON.stringify(key.mask),
    created_by: key.createdBy?.id ?? null,
    created_at: key.createdAt.getTime(),
    last_used_at: key.lastUsedAt?.getTime() ?? null,
  }
}

function fromRow(row: ApiKeyRow & { email: string | null }): ApiKey {
  const mask: Mask = JSON.parse(row.mask)
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    mask,
    createdAt: new Date(row.created_at),
    createdBy: row.created_by === null ? undefined : { id: row.created_by, email: row.email },
    lastUsedAt: row.last_used_at === null ? undefined : new Date(row.last_used_at),
  }
}
