import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { SettingStore, TeamStore } from '../domain/team.ts'
import { toKeyRow } from './keys.ts'
import type { Schema } from './schema.ts'

export function sqlTeamStore(db: Kysely<Schema>): TeamStore {
  return {
    async isEmpty() {
      return !(await db.selectFrom('teams').select('id').limit(1).executeTakeFirst())
    },
    insertFirst: ({ team, user, apiKey, apiKeyHash, accessToken, now }) =>
      db.transaction().execute(async (transaction) => {
        const created_at = now.getTime()
        await transaction
          .insertInto('teams')
          .values({ id: team.id, name: team.name, created_at, limits: null })
          .execute()
        await transaction
          .insertInto('users')
          .values({ id: user.id, email: user.email, default_team_id: team.id, created_at })
          .execute()
        await transaction
          .insertInto('memberships')
          .values({ user_id: user.id, team_id: team.id, created_at })
          .execute()
        await transaction.insertInto('api_keys').values(toKeyRow(apiKey, apiKeyHash)).execute()
        await transaction
          .insertInto('access_tokens')
          .values({
            id: randomUUID(),
            user_id: user.id,
            name: 'default',
            hash: accessToken.hash,
            mask: JSON.stringify(accessToken.mask),
            created_at,
          })
          .execute()
      }),
    async findUserByTokenHash(hash) {
      const row = await db
        .selectFrom('access_tokens')
        .innerJoin('users', 'users.id', 'access_tokens.user_id')
        .select(['users.id', 'users.email', 'users.default_team_id'])
        .where('access_tokens.hash', '=', hash)
        .executeTakeFirst()
      return row && { id: row.id, email: row.email, defaultTeamId: row.default_team_id }
    },
    async isMember(userId, teamId) {
      const row = await db
        .selectFrom('memberships')
        .select('team_id')
        .where('user_id', '=', userId)
        .where('team_id', '=', teamId)
        .executeTakeFirst()
      return row !== undefined
    },
  }
}

export function sqlSettingStore(db: Kysely<Schema>): SettingStore {
  return {
    async ensure(name, make) {
      await db
        .insertInto('settings')
        .values({ name, value: make() })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .execute()
      const { value } = await db
        .selectFrom('settings')
        .select('value')
        .where('name', '=', name)
        .executeTakeFirstOrThrow()
      return value
    },
  }
}
