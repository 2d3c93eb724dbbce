import type { Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/** Schema migration. Never change a released migration; add a new one. */
export type Migration = (db: Kysely<Schema>) => Promise<void>

/**
 * Migrations by name that leave the store usable for older releases, so that an upgrade can be rolled back. They add
 * tables, and columns that are nullable or have a default. They do not count for the version of the store.
 */
export type Additions = Readonly<Record<string, Migration>>

/** Migrates the store to the newest version in one transaction. Refuses a store that a newer Atoll has written. */
export async function migrate(
  db: Kysely<Schema>,
  steps: readonly Migration[],
  additions: Additions = {},
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    const versions = transaction.withTables<{ schema_version: { version: number } }>()
    await versions.schema
      .createTable('schema_version')
      .ifNotExists()
      .addColumn('version', 'integer', (column) => column.notNull())
      .execute()
    const row = await versions.selectFrom('schema_version').select('version').executeTakeFirst()
    const version = row?.version ?? 0
    if (version > steps.length) {
      throw new Error(
        `the store has version ${version}, this Atoll knows up to ${steps.length}: start the newer Atoll that wrote it, or restore a backup`,
      )
    }
    for (const step of steps.slice(version)) await step(transaction)
    await (row
      ? versions.updateTable('schema_version').set({ version: steps.length }).execute()
      : versions.insertInto('schema_version').values({ version: steps.length }).execute())
    await add(transaction, additions)
  })
}

async function add(db: Kysely<Schema>, additions: Additions): Promise<void> {
  const names = db.withTables<{ schema_additions: { name: string } }>()
  await names.schema
    .createTable('schema_additions')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .execute()
  const rows = await names.selectFrom('schema_additions').select('name').execute()
  const done = new Set(rows.map(({ name }) => name))
  for (const [name, step] of Object.entries(additions)) {
    if (done.has(name)) continue
    await step(db)
    await names.insertInto('schema_additions').values({ name }).execute()
  }
}
