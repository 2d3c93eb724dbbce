import type { Transaction } from 'kysely'
import { isBuildId } from '../../domain/template.ts'
import type { Schema } from '../schema.ts'

/** Deletes builds, names and tags by cascade; snapshots of deleted builds lose their build. */
export async function deleteTemplate(
  db: Transaction<Schema>,
  templateId: string,
  tag: string | undefined,
): Promise<'deleted' | 'in_use'> {
  // Lock the template: a sandbox start updates its spawn count in the same row.
  await db.selectFrom('templates').select('id').where('id', '=', templateId).forUpdate().execute()
  const builds = tag === undefined ? undefined : await findOnlyTagged(db, templateId, tag)
  const query = db
    .selectFrom('sandboxes')
    .select('id')
    .where('template_id', '=', templateId)
    .where('state', '!=', 'ended')
    .limit(1)
  if (builds?.length === 0) return 'deleted'
  const used = await (builds ? query.where('build_id', 'in', builds) : query).executeTakeFirst()
  if (used) return 'in_use'
  if (builds) await db.deleteFrom('template_builds').where('id', 'in', builds).execute()
  else await db.deleteFrom('templates').where('id', '=', templateId).execute()
  return 'deleted'
}

/** Finds builds that have only this tag, or that have this ID. Undefined if the template has no other builds. */
async function findOnlyTagged(
  db: Transaction<Schema>,
  templateId: string,
  tag: string,
): Promise<string[] | undefined> {
  const rows = await db
    .selectFrom('template_tags')
    .select(['build_id', 'tag'])
    .where('template_id', '=', templateId)
    .execute()
  const isMeant = (row: { tag: string; build_id: string }) =>
    isBuildId(tag) ? row.build_id === tag : row.tag === tag
  const others = new Set(rows.filter((row) => !isMeant(row)).map((row) => row.build_id))
  if (others.size === 0) return undefined
  const meant = new Set(rows.filter(isMeant).map((row) => row.build_id))
  return [...(isBuildId(tag) ? meant : meant.difference(others))]
}
