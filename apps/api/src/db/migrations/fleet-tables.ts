import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Adds the members of a fleet and the tokens with which they join. */
export async function addFleet({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable('fleet_members')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('joined_at', 'bigint', (column) => column.notNull())
    .addColumn('removed_at', 'bigint')
    .execute()
  await schema
    .createTable('join_tokens')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('used_at', 'bigint')
    .addColumn('member_id', 'text')
    .execute()
}

/** Adds whether the agent of a node is starting. */
export async function addStarting({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .alterTable('nodes')
    .addColumn('is_starting', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
}

/** Adds the last call of each edge. */
export async function addEdgeCalls({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('fleet_members').addColumn('seen_at', 'bigint').execute()
}

/** Adds when an operator said that a node never comes back. An older release ignores the column. */
export async function addForgotten({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('fleet_members').addColumn('forgotten_at', 'bigint').execute()
}
