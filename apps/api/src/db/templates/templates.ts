import type { Kysely, Transaction } from 'kysely'
import { defaultTag } from '../../domain/template.ts'
import type { BaseTemplate, TemplateStore } from '../../domain/template.ts'
import type { Schema } from '../schema.ts'
import { deleteTemplate } from './template-delete.ts'
import { findBuild, findBuildById, locateTemplate } from './template-find.ts'
import { listTemplates } from './template-list.ts'
import { publishTemplate } from './template-publish.ts'
import { assignTags, listTags, removeTags } from './template-tags.ts'

export function sqlTemplateStore(db: Kysely<Schema>): TemplateStore {
  return {
    locate: (reference, teamId) => locateTemplate(db, reference, teamId),
    findBuild: (templateId, tag) => findBuild(db, templateId, tag),
    findBuildById: (buildId) => findBuildById(db, buildId),
    ensure: (template, now) =>
      db.transaction().execute((transaction) => ensure(transaction, template, now)),
    list: (teamId, page) => listTemplates(db, teamId, page),
    tag: (templateId, buildId, tags, now) =>
      db
        .transaction()
        .execute((transaction) =>
          assignTags(transaction, { template_id: templateId, build_id: buildId }, tags, now),
        ),
    publish: (templateId, how, now) =>
      db.transaction().execute((transaction) => publishTemplate(transaction, templateId, how, now)),
    untag: (templateId, tags, now) =>
      db.transaction().execute((transaction) => removeTags(transaction, templateId, tags, now)),
    listTags: (templateId) => listTags(db, templateId),
    delete: (templateId, tag) =>
      db.transaction().execute((transaction) => deleteTemplate(transaction, templateId, tag)),
  }
}

async function ensure(db: Transaction<Schema>, template: BaseTemplate, now: Date): Promise<void> {
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
    // Another server that started at the same time inserted the template first.
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

/** Sets `updated_at` only if a column changes. */
async function update(
  db: Transaction<Schema>,
  templateId: string,
  template: BaseTemplate,
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

function toColumns({ nodeTemplateId, resources }: BaseTemplate) {
  return {
    node_template_id: nodeTemplateId,
    cpu_count: resources.cpuCount,
    memory_mb: resources.memoryMb,
    disk_size_mb: resources.diskSizeMb,
  }
}
