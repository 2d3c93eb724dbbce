import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Allows users in several teams, names access tokens, and adds limits per team. */
export async function addMemberships(db: Kysely<Schema>): Promise<void> {
  const { schema } = db
  await schema
    .createTable('memberships')
    .addColumn('user_id', 'text', (column) => column.notNull().references('users.id'))
    .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id'))
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('memberships_key', ['user_id', 'team_id'])
    .execute()
  await db
    .insertInto('memberships')
    .columns(['user_id', 'team_id', 'created_at'])
    .expression((from) => from.selectFrom('users').select(['id', 'default_team_id', 'created_at']))
    .execute()
  await schema
    .alterTable('access_tokens')
    .addColumn('name', 'text', (column) => column.notNull().defaultTo('default'))
    .execute()
  await schema.createIndex('access_tokens_of_user').on('access_tokens').column('user_id').execute()
  // JSON of the limits that differ from the configured ones.
  await schema.alterTable('teams').addColumn('limits', 'text').execute()
}

/** Lets operators add users by email and set node statuses. */
export async function addOperation({ schema }: Kysely<Schema>): Promise<void> {
  await schema.createIndex('users_by_email').unique().on('users').column('email').execute()
  await schema
    .createTable('nodes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('status_changed_at', 'bigint', (column) => column.notNull())
    .execute()
}

/** Lets operators block a team. */
export async function addTeamBlocks({ schema }: Kysely<Schema>): Promise<void> {
  // JSON with level, reason and time; null if the team is not blocked.
  await schema.alterTable('teams').addColumn('block', 'text').execute()
}
