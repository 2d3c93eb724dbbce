import type { Kysely, Transaction } from 'kysely'
import type { NewUser, User, UserStore } from '../../domain/teams/team.ts'
import { toTokenRow } from './access-tokens.ts'
import type { Schema, UserRow } from '../schema.ts'

export function sqlUserStore(db: Kysely<Schema>): UserStore {
  return {
    async findByTokenHash(hash) {
      const row = await db
        .selectFrom('access_tokens')
        .innerJoin('users', 'users.id', 'access_tokens.user_id')
        .selectAll('users')
        .where('access_tokens.hash', '=', hash)
        .executeTakeFirst()
      return row && fromRow(row)
    },
    async findByEmail(email) {
      const row = await db
        .selectFrom('users')
        .selectAll()
        .where('email', '=', email)
        .executeTakeFirst()
      return row && fromRow(row)
    },
    insert: (made) => db.transaction().execute((transaction) => insertUser(transaction, made)),
    async addMember(userId, teamId, now) {
      await db
        .insertInto('memberships')
        .values({ user_id: userId, team_id: teamId, created_at: now.getTime() })
        .onConflict((conflict) => conflict.columns(['user_id', 'team_id']).doNothing())
        .execute()
    },
    async removeMember(userId, teamId) {
      const { numDeletedRows } = await db
        .deleteFrom('memberships')
        .where('user_id', '=', userId)
        .where('team_id', '=', teamId)
        .executeTakeFirst()
      return numDeletedRows > 0n
    },
  }
}

export async function insertUser(
  db: Transaction<Schema>,
  { user, token, hash }: NewUser,
): Promise<boolean> {
  const created_at = token.createdAt.getTime()
  const { id, email, defaultTeamId: default_team_id } = user
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('users')
    .values({ id, email, default_team_id, created_at })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows === 0n) return false
  await db
    .insertInto('memberships')
    .values({ user_id: id, team_id: default_team_id, created_at })
    .execute()
  await db.insertInto('access_tokens').values(toTokenRow(token, hash)).execute()
  return true
}

function fromRow({ id, email, default_team_id }: UserRow): User {
  return { id, email, defaultTeamId: default_team_id }
}
