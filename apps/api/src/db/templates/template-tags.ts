import type { Kysely, Transaction } from 'kysely'
import type { TemplateTag } from '../../domain/template.ts'
import type { Schema } from '../schema.ts'

/** Moves the tags to this build. Returns false when the build has no files any more. */
export async function assignTags(
  db: Transaction<Schema>,
  build: { template_id: string; build_id: string },
  tags: readonly string[],
  now: Date,
): Promise<boolean> {
  const { template_id, build_id } = build
  // Lock the template against the collection of this build.
  const template = db.selectFrom('templates').select('id').where('id', '=', template_id)
  await template.forNoKeyUpdate().execute()
  const found = await db
    .selectFrom('template_builds')
    .select('id')
    .where('id', '=', build_id)
    .where('node_template_id', 'is not', null)
    .executeTakeFirst()
  if (!found) return false
  for (const tag of tags) await assignTag(db, { ...build, tag }, now)
  return true
}

/** Moves the tag to this build, even if another build got it in the same millisecond. */
export async function assignTag(
  db: Transaction<Schema>,
  { template_id, tag, build_id }: { template_id: string; tag: string; build_id: string },
  now: Date,
): Promise<void> {
  const { last } = await db
    .selectFrom('template_tags')
    .select(({ fn }) => fn.max('created_at').as('last'))
    .where('template_id', '=', template_id)
    .where('tag', '=', tag)
    .executeTakeFirstOrThrow()
  const created_at = Math.max(now.getTime(), (last ?? 0) + 1)
  await db
    .insertInto('template_tags')
    .values({ template_id, tag, build_id, created_at })
    .onConflict((conflict) =>
      conflict.columns(['template_id', 'tag', 'build_id']).doUpdateSet({ created_at }),
    )
    .execute()
}

/** Removes the tags. Marks their builds as changed: from now on they may be unused. */
export async function removeTags(
  db: Transaction<Schema>,
  templateId: string,
  tags: readonly string[],
  now: Date,
): Promise<void> {
  await db
    .updateTable('template_builds')
    .set({ updated_at: now.getTime() })
    .where('template_id', '=', templateId)
    .where('id', 'in', (query) =>
      query
        .selectFrom('template_tags')
        .select('build_id')
        .where('template_id', '=', templateId)
        .where('tag', 'in', tags),
    )
    .execute()
  await db
    .deleteFrom('template_tags')
    .where('template_id', '=', templateId)
    .where('tag', 'in', tags)
    .execute()
}

/** Lists tags, each with the build that it selects: the newest ready build that has the tag. */
export async function listTags(db: Kysely<Schema>, templateId: string): Promise<TemplateTag[]> {
  const rows = await db
    .selectFrom('template_tags')
    .innerJoin('template_builds', 'template_builds.id', 'template_tags.build_id')
    .select(['tag', 'build_id', 'template_tags.created_at'])
    .where('template_tags.template_id', '=', templateId)
    .where('status', '=', 'ready')
    .orderBy('tag')
    .orderBy('template_tags.created_at', 'desc')
    .execute()
  return rows
    .filter((row, index) => row.tag !== rows[index - 1]?.tag)
    .map((row) => ({ tag: row.tag, buildId: row.build_id, createdAt: new Date(row.created_at) }))
}
