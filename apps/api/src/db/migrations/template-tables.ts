import type { ColumnDefinitionBuilder, Kysely } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Gives templates several builds, names and tags, and a spawn count. Before, a template was one row with one build and
 * one name.
 */
export async function splitTemplates(db: Kysely<Schema>): Promise<void> {
  const old = db.withTables<{ templates: OldTemplateRow }>()
  const rows = await old.selectFrom('templates').selectAll().execute()
  await db.schema.dropTable('templates').execute()
  await createTemplateTables(db.schema)
  for (const row of rows) {
    await db
      .insertInto('templates')
      .values({ ...(await countSpawns(db, row.id)), ...toTemplate(row) })
      .execute()
    await db.insertInto('template_builds').values(toBuild(row)).execute()
    await db
      .insertInto('template_tags')
      .values({
        template_id: row.id,
        tag: 'default',
        build_id: row.build_id,
        created_at: row.created_at,
      })
      .execute()
    if (row.alias === null) continue
    await db
      .insertInto('template_names')
      .values({ namespace: '', alias: row.alias, template_id: row.id, created_at: row.created_at })
      .execute()
  }
}

interface OldTemplateRow {
  id: string
  build_id: string
  alias: string | null
  public: number
  node_template_id: string
  cpu_count: number
  memory_mb: number
  disk_size_mb: number
  created_at: number
  updated_at: number
}

function toTemplate(row: OldTemplateRow) {
  const { id, created_at, updated_at } = row
  return { id, team_id: null, public: row.public, created_by: null, created_at, updated_at }
}

function toBuild(row: OldTemplateRow) {
  return {
    id: row.build_id,
    template_id: row.id,
    status: 'ready',
    node_template_id: row.node_template_id,
    cpu_count: row.cpu_count,
    memory_mb: row.memory_mb,
    disk_size_mb: row.disk_size_mb,
    envd_version: null,
    created_at: row.created_at,
    updated_at: row.updated_at,
    finished_at: row.created_at,
  }
}

async function countSpawns(db: Kysely<Schema>, templateId: string) {
  const { total, last } = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => [fn.countAll<number>().as('total'), fn.max('started_at').as('last')])
    .where('template_id', '=', templateId)
    .where('started_at', 'is not', null)
    .executeTakeFirstOrThrow()
  return { spawn_count: total, last_spawned_at: last }
}

async function createTemplateTables(schema: Kysely<Schema>['schema']): Promise<void> {
  await schema
    .createTable('templates')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.references('teams.id'))
    .addColumn('public', 'integer', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.references('users.id'))
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('spawn_count', 'bigint', (column) => column.notNull())
    .addColumn('last_spawned_at', 'bigint')
    .execute()
  await schema
    .createIndex('templates_of_team')
    .on('templates')
    .columns(['team_id', 'created_at', 'id'])
    .execute()
  await schema
    .createTable('template_builds')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('template_id', 'text', ofTemplate)
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('node_template_id', 'text')
    .addColumn('cpu_count', 'integer', (column) => column.notNull())
    .addColumn('memory_mb', 'integer', (column) => column.notNull())
    .addColumn('disk_size_mb', 'integer', (column) => column.notNull())
    .addColumn('envd_version', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('finished_at', 'bigint')
    .execute()
  await schema
    .createIndex('template_builds_of_template')
    .on('template_builds')
    .columns(['template_id', 'created_at'])
    .execute()
  await schema
    .createTable('template_names')
    .addColumn('namespace', 'text', (column) => column.notNull())
    .addColumn('alias', 'text', (column) => column.notNull())
    .addColumn('template_id', 'text', ofTemplate)
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('template_names_key', ['namespace', 'alias'])
    .execute()
  await schema
    .createIndex('template_names_of_template')
    .on('template_names')
    .column('template_id')
    .execute()
  await schema
    .createTable('template_tags')
    .addColumn('template_id', 'text', ofTemplate)
    .addColumn('tag', 'text', (column) => column.notNull())
    .addColumn('build_id', 'text', (column) =>
      column.notNull().references('template_builds.id').onDelete('cascade'),
    )
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('template_tags_key', ['template_id', 'tag', 'build_id'])
    .execute()
}

function ofTemplate(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull().references('templates.id').onDelete('cascade')
}
