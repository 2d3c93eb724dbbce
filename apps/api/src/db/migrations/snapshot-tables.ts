import type { Kysely } from 'kysely'
import { toSlug } from '../../domain/teams/team.ts'
import type { Schema } from '../schema.ts'

/** Adds the template namespace of a team. */
export async function addSlugs(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .alterTable('teams')
    .addColumn('slug', 'text', (column) => column.notNull().defaultTo(''))
    .execute()
  const teams = await db
    .selectFrom('teams')
    .select(['id', 'name'])
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  const taken = new Set<string>()
  for (const { id, name } of teams) {
    const plain = toSlug(name)
    const slug = taken.has(plain) ? toSlug(name, id) : plain
    taken.add(slug)
    await db.updateTable('teams').set({ slug }).where('id', '=', id).execute()
  }
  await db.schema.createIndex('teams_by_slug').unique().on('teams').column('slug').execute()
}

/** Adds snapshots; a published snapshot has a build. */
export async function addSnapshots({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .alterTable('templates')
    .addColumn('is_snapshot', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await schema
    .createTable('snapshots')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull().references('teams.id'))
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('holder', 'text')
    .addColumn('build_id', 'text', (column) =>
      column.references('template_builds.id').onDelete('set null'),
    )
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createIndex('snapshots_of_team')
    .on('snapshots')
    .columns(['team_id', 'created_at', 'id'])
    .execute()
  await schema.createIndex('snapshots_of_build').on('snapshots').column('build_id').execute()
}
