import type { KeyRing, SealingWrite } from '@atoll/kit/encryption/key-ring'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import { sql } from 'kysely'
import type { Kysely, Transaction } from 'kysely'
import { z } from 'zod'
import type { Secret, SecretStore } from '../domain/secret.ts'
import { batches } from './batches.ts'
import type { Schema, SecretRow } from './schema.ts'

type Db = Kysely<Schema>

export async function addSecrets({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable('secrets')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('metadata', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('secrets_by_name', ['team_id', 'name'])
    .execute()
}

/** Values are stored sealed, for the ID of their secret. */
export function secretIdentity(id: string): string {
  return `secret:${id}`
}

export function sqlSecretStore(db: Db, keyRing: KeyRing): SecretStore {
  return {
    async insert(secret, value, limit) {
      using write = keyRing.beginWrite()
      const sealed = write.seal(value, secretIdentity(secret.id))
      return await db
        .transaction()
        .execute((transaction) => insert(transaction, secret, { value: sealed, limit }))
    },
    async find(teamId, idOrName) {
      const row = await named(db, teamId, idOrName).executeTakeFirst()
      return row && fromRow(row)
    },
    list: (teamId, page) => list(db, teamId, page),
    async replace(teamId, idOrName, next, now) {
      using write = keyRing.beginWrite()
      return await replace(db, { teamId, idOrName, ...next, now }, write)
    },
    async delete(teamId, idOrName) {
      const row = await db
        .deleteFrom('secrets')
        .where('id', 'in', named(db, teamId, idOrName).clearSelect().select('id'))
        .returningAll()
        .executeTakeFirst()
      return row && fromRow(row)
    },
    values: (teamId, names) => findValues(db, keyRing, teamId, names),
  }
}

async function replace(
  db: Db,
  next: {
    readonly teamId: string
    readonly idOrName: string
    readonly value: string
    readonly metadata: Secret['metadata'] | undefined
    readonly now: Date
  },
  write: SealingWrite,
): Promise<Secret | undefined> {
  const { metadata } = next
  // The sealed value depends on the ID. A secret of this name that is created meanwhile has another one.
  const found = await named(db, next.teamId, next.idOrName).executeTakeFirst()
  if (!found) return undefined
  const row = await db
    .updateTable('secrets')
    .set({
      value: write.seal(next.value, secretIdentity(found.id)),
      version: sql`version + 1`,
      updated_at: next.now.getTime(),
      ...(metadata && { metadata: JSON.stringify(metadata) }),
    })
    .where('id', '=', found.id)
    .returningAll()
    .executeTakeFirst()
  return row && fromRow(row)
}

async function list(
  db: Db,
  teamId: string,
  { limit, after }: Parameters<SecretStore['list']>[1],
): Promise<Secret[]> {
  let query = db
    .selectFrom('secrets')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
  if (after) {
    const time = after.startedAt.getTime()
    query = query.where((where) =>
      where.or([
        where('created_at', '<', time),
        where.and([where('created_at', '=', time), where('id', '>', `sec_${after.id}`)]),
      ]),
    )
  }
  return (await query.execute()).map(fromRow)
}

async function findValues(
  db: Db,
  keyRing: KeyRing,
  teamId: string,
  names: readonly string[],
): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const batch of batches(names)) {
    const rows = await db
      .selectFrom('secrets')
      .select(['id', 'name', 'value'])
      .where('team_id', '=', teamId)
      .where('name', 'in', batch)
      .execute()
    for (const { id, name, value } of rows) {
      // Values from before encryption are plain until the start has sealed them.
      found.set(name, isSealed(value) ? keyRing.open(value, secretIdentity(id)) : value)
    }
  }
  return found
}

function named(db: Db, teamId: string, idOrName: string) {
  return db
    .selectFrom('secrets')
    .selectAll()
    .where('team_id', '=', teamId)
    .where((where) => where.or([where('id', '=', idOrName), where('name', '=', idOrName)]))
}

async function insert(
  db: Transaction<Schema>,
  secret: Secret,
  { value, limit }: { readonly value: string; readonly limit: number },
): Promise<'ok' | 'taken' | 'full'> {
  const { id, teamId, name, version, metadata, createdAt, updatedAt } = secret
  // Lock the team: serializes concurrent inserts.
  await db.selectFrom('teams').select('id').where('id', '=', teamId).forNoKeyUpdate().execute()
  if (await named(db, teamId, name).executeTakeFirst()) return 'taken'
  const { total } = await db
    .selectFrom('secrets')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow()
  if (total >= limit) return 'full'
  await db
    .insertInto('secrets')
    .values({
      id,
      team_id: teamId,
      name,
      version,
      value,
      metadata: JSON.stringify(metadata),
      created_at: createdAt.getTime(),
      updated_at: updatedAt.getTime(),
    })
    .execute()
  return 'ok'
}

const Metadata = z.record(z.string(), z.string())

function fromRow(row: SecretRow): Secret {
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    version: row.version,
    metadata: Metadata.parse(JSON.parse(row.metadata)),
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  }
}
