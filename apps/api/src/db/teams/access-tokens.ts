import type { Kysely } from 'kysely'
import type { AccessToken, AccessTokenStore } from '../../domain/teams/team.ts'
import type { AccessTokenRow, Schema } from '../schema.ts'

export function sqlAccessTokenStore(db: Kysely<Schema>): AccessTokenStore {
  return {
    async insert(token, hash) {
      await db.insertInto('access_tokens').values(toTokenRow(token, hash)).execute()
    },
    async delete(userId, id) {
      const { numDeletedRows } = await db
        .deleteFrom('access_tokens')
        .where('user_id', '=', userId)
        .where('id', '=', id)
        .executeTakeFirst()
      return numDeletedRows > 0n
    },
  }
}

export function toTokenRow(token: AccessToken, hash: string): AccessTokenRow {
  return {
    id: token.id,
    user_id: token.userId,
    name: token.name,
    hash,
    mask: JSON.stringify(token.mask),
    created_at: token.createdAt.getTime(),
  }
}
