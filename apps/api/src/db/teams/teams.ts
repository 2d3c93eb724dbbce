import type { Kysely } from 'kysely'
import type { OwnLimits } from '../../domain/teams/limits.ts'
import type { TeamBlock } from '../../domain/teams/team-block.ts'
import { toSlug } from '../../domain/teams/team.ts'
import type { SettingStore, Team, TeamStore } from '../../domain/teams/team.ts'
import { toKeyRow } from './keys.ts'
import type { Schema, TeamRow } from '../schema.ts'
import { insertUser } from './users.ts'

export function sqlTeamStore(db: Kysely<Schema>): TeamStore {
  return {
    async isEmpty() {
      return !(await db.selectFrom('teams').select('id').limit(1).executeTakeFirst())
    },
    insertFirst: ({ team, user, apiKey, apiKeyHash, accessToken, accessTokenHash }) =>
      db.transaction().execute(async (transaction) => {
        await insertTeam(transaction, team)
        await insertUser(transaction, { user, token: accessToken, hash: accessTokenHash })
        await transaction.insertInto('api_keys').values(toKeyRow(apiKey, apiKeyHash)).execute()
      }),
    insert: (team) => insertTeam(db, team),
    async find(id) {
      const row = await db.selectFrom('teams').selectAll().where('id', '=', id).executeTakeFirst()
      return row && fromRow(row)
    },
    async list() {
      const query = db.selectFrom('teams').selectAll().orderBy('created_at').orderBy('id')
      return (await query.execute()).map(fromRow)
    },
    update: (id, change) =>
      db.transaction().execute(async (transaction) => {
        const row = await transaction
          .selectFrom('teams')
          .selectAll()
          .where('id', '=', id)
          .forNoKeyUpdate()
          .executeTakeFirst()
        if (!row) return undefined
        const changed = change(fromRow(row))
        const { id: _, ...columns } = toRow(changed)
        await transaction.updateTable('teams').set(columns).where('id', '=', id).execute()
        return changed
      }),
    async isMember(userId, teamId) {
      const row = await db
        .selectFrom('memberships')
        .select('team_id')
        .where('user_id', '=', userId)
        .where('team_id', '=', teamId)
        .executeTakeFirst()
      return row !== undefined
    },
    async listOfUser(userId) {
      const rows = await db
        .selectFrom('memberships')
        .innerJoin('teams', 'teams.id', 'memberships.team_id')
        .selectAll('teams')
        .where('user_id', '=', userId)
        .orderBy('memberships.created_at')
        .orderBy('teams.id')
        .execute()
      return rows.map(fromRow)
    },
  }
}

async function insertTeam(db: Kysely<Schema>, team: Team): Promise<Team> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('teams')
    .values(toRow(team))
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows !== 0n) return team
  const other = { ...team, slug: toSlug(team.name, team.id) }
  await db.insertInto('teams').values(toRow(other)).execute()
  return other
}

function toRow({ id, name, slug, createdAt, limits, block }: Team): TeamRow {
  return {
    id,
    name,
    slug,
    created_at: createdAt.getTime(),
    limits: Object.keys(limits).length > 0 ? JSON.stringify(limits) : null,
    block: block ? JSON.stringify({ ...block, since: block.since.getTime() }) : null,
  }
}

function fromRow(row: TeamRow): Team {
  const limits: OwnLimits = row.limits === null ? {} : JSON.parse(row.limits)
  const block = row.block === null ? undefined : toBlock(row.block)
  const { id, name, slug } = row
  return { id, name, slug, createdAt: new Date(row.created_at), limits, block }
}

function toBlock(json: string): TeamBlock {
  const { since, ...rest }: Omit<TeamBlock, 'since'> & { since: number } = JSON.parse(json)
  return { ...rest, since: new Date(since) }
}

export function sqlSettingStore(db: Kysely<Schema>): SettingStore {
  return {
    async find(name) {
      const found = await db
        .selectFrom('settings')
        .select('value')
        .where('name', '=', name)
        .executeTakeFirst()
      return found?.value
    },
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
