import type { Kysely, Transaction } from 'kysely'
import { defaultTag } from '../domain/template.ts'
import type { Template, TemplateStore } from '../domain/template.ts'
import type { Schema } from './schema.ts'
import { listTemplates } from './template-list.ts'

export function sqlTemplateStore(db: Kysely<Schema>): TemplateStore {
  return {
    find: (name, teamId) => find(db, name, teamId),
    ensure: (template, now) =>
      db.transaction().execute((transaction) => ensure(transaction, template, now)),
    list: (teamId, page) => listTemplates(db, teamId, page),
  }
}

async function find(
  db: Kysely<Schema>,
  name: string,
  teamId: string,
): Promise<Template | undefined> {
  const row = await db
    .selectFrom('templates')
    .innerJoin('template_tags', 'template_tags.template_id', 'templates.id')
    .innerJoin('template_builds', 'template_builds.id', 'template_tags.build_id')
    .leftJoin('template_names', 'template_names.template_id', 'templates.id')
    .select(['templates.id', 'templates.public', 'template_builds.id as build_id', 'alias'])
    .select(['node_template_id', 'cpu_count', 'memory_mb', 'disk_size_mb'])
    .where('tag', '=', defaultTag)
    .where('status', '=', 'ready')
    .where((where) => where.or([where('templates.id', '=', name), where('alias', '=', name)]))
    .where((where) => where.or([where('public', '=', 1), where('team_id', '=', teamId)]))
    .where((where) => where.or([where('namespace', '=', ''), where('namespace', 'is', null)]))
    .orderBy('template_tags.created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!row?.node_template_id) return undefined
  return {
    id: row.id,
    buildId: row.build_id,
    alias: row.alias ?? undefined,
    public: row.public === 1,
    nodeTemplateId: row.node_template_id,
    resources: {
      cpuCount: row.cpu_count,
      memoryMb: row.memory_mb,
      diskSizeMb: row.disk_size_mb,
    },
  }
}

type Named = Parameters<TemplateStore['ensure']>[0]

async function ensure(db: Transaction<Schema>, template: Named, now: Date): Promise<void> {
  const known = await findNamed(db, template.alias)
  if (known !== undefined) return update(db, known, template, now)
  const created_at = now.getTime()
  const { id: template_id, alias } = template
  await db
    .insertInto('templates')
    .values({
      id: template_id,
      team_id: null,
      public: template.public ? 1 : 0,
      created_by: null,
      created_at,
      updated_at: created_at,
      spawn_count: 0,
      last_spawned_at: null,
    })
    .execute()
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('template_names')
    .values({ namespace: '', alias, template_id, created_at })
    .onConflict((conflict) => conflict.columns(['namespace', 'alias']).doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows === 0n) {
    // Of two servers that start together, the other one was faster.
    await db.deleteFrom('templates').where('id', '=', template_id).execute()
    return
  }
  await db
    .insertInto('template_builds')
    .values({
      id: template.buildId,
      template_id,
      status: 'ready',
      ...toColumns(template),
      envd_version: null,
      created_at,
      updated_at: created_at,
      finished_at: created_at,
    })
    .execute()
  await db
    .insertInto('template_tags')
    .values({ template_id, tag: defaultTag, build_id: template.buildId, created_at })
    .execute()
}

async function findNamed(db: Transaction<Schema>, alias: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('template_names')
    .select('template_id')
    .where('namespace', '=', '')
    .where('alias', '=', alias)
    .executeTakeFirst()
  return row?.template_id
}

/** Only a real change counts as an update. */
async function update(
  db: Transaction<Schema>,
  templateId: string,
  template: Named,
  now: Date,
): Promise<void> {
  const columns = toColumns(template)
  const { numUpdatedRows } = await db
    .updateTable('template_builds')
    .set({ ...columns, updated_at: now.getTime() })
    .where('template_id', '=', templateId)
    .where((where) =>
      where.or([
        where('node_template_id', '!=', columns.node_template_id),
        where('cpu_count', '!=', columns.cpu_count),
        where('memory_mb', '!=', columns.memory_mb),
        where('disk_size_mb', '!=', columns.disk_size_mb),
      ]),
    )
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return
  await db
    .updateTable('templates')
    .set({ updated_at: now.getTime() })
    .where('id', '=', templateId)
    .execute()
}

function toColumns({ nodeTemplateId, resources }: Template) {
  return {
    node_template_id: nodeTemplateId,
    cpu_count: resources.cpuCount,
    memory_mb: resources.memoryMb,
    disk_size_mb: resources.diskSizeMb,
  }
}
