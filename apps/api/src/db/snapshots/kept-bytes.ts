import type { Kysely, Transaction } from 'kysely'
import { keptStates } from '../../domain/sandboxes/sandbox.ts'
import type { Schema } from '../schema.ts'

/** Migration: adds columns for the disk usage of paused sandboxes and snapshots. */
export async function addKeptBytes({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable('sandboxes').addColumn('kept_bytes', 'bigint').execute()
  await schema.alterTable('snapshots').addColumn('size_bytes', 'bigint').execute()
}

/** Returns the disk usage of all paused sandboxes and snapshots of a team, in bytes. */
export async function sumKept(db: Kysely<Schema>, teamId: string): Promise<number> {
  const sandboxes = await db
    .selectFrom('sandboxes')
    .select((select) => select.fn.sum<number | null>('kept_bytes').as('total'))
    .where('team_id', '=', teamId)
    .where('state', 'in', keptStates)
    .executeTakeFirstOrThrow()
  const snapshots = await db
    .selectFrom('snapshots')
    .select((select) => select.fn.sum<number | null>('size_bytes').as('total'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow()
  return (sandboxes.total ?? 0) + (snapshots.total ?? 0)
}

/** Locks the team row until the transaction ends, then returns `sumKept`: the sum includes concurrent changes. */
export async function sumKeptLocked(db: Transaction<Schema>, teamId: string): Promise<number> {
  const team = db.selectFrom('teams').select('id').where('id', '=', teamId)
  await team.forNoKeyUpdate().executeTakeFirst()
  return sumKept(db, teamId)
}
