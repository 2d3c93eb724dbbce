import type { Kysely } from 'kysely'
import type { Position } from '../../domain/paging.ts'
import type { ListedSnapshot, SnapshotFilter } from '../../domain/snapshot.ts'
import { batches } from '../batches.ts'
import type { Schema } from '../schema.ts'

type Db = Kysely<Schema>

interface Page {
  readonly limit: number
  readonly after: Position | undefined
}

/** Reads one page of snapshots, then the names and tags of their templates. */
export async function listSnapshots(
  db: Db,
  filter: SnapshotFilter,
  page: Page,
): Promise<ListedSnapshot[]> {
  const rows = await readPage(db, filter, page)
  const names = new Map<string, { namespace: string; alias: string }[]>()
  const tags = new Map<string, string[]>()
  for (const ids of batches([...new Set(rows.map(({ template_id }) => template_id))])) {
    for (const { template_id, namespace, alias } of await readNames(db, ids)) {
      names.set(template_id, [...(names.get(template_id) ?? []), { namespace, alias }])
    }
    for (const { build_id, tag } of await readTags(db, ids)) {
      tags.set(build_id, [...(tags.get(build_id) ?? []), tag])
    }
  }
  return rows.map((row) => ({
    id: row.id,
    sandboxId: row.sandbox_id,
    createdAt: new Date(row.created_at),
    templateId: row.template_id,
    buildId: row.build_id,
    names: names.get(row.template_id) ?? [],
    tags: tags.get(row.build_id) ?? [],
  }))
}

async function readPage(db: Db, filter: SnapshotFilter, { limit, after }: Page) {
  let query = db
    .selectFrom('snapshots')
    .innerJoin('template_builds', 'template_builds.id', 'snapshots.build_id')
    .select(['snapshots.id', 'sandbox_id', 'snapshots.created_at', 'template_id'])
    .select('template_builds.id as build_id')
    .where('snapshots.team_id', '=', filter.teamId)
    .orderBy('snapshots.created_at', 'desc')
    .orderBy('snapshots.id')
    .limit(limit)
  if (filter.sandboxId !== undefined) query = query.where('sandbox_id', '=', filter.sandboxId)
  if (filter.sandboxIds) query = query.where('sandbox_id', 'in', filter.sandboxIds)
  if (filter.templateId !== undefined) query = query.where('template_id', '=', filter.templateId)
  if (filter.buildId !== undefined) query = query.where('build_id', '=', filter.buildId)
  if (after) {
    const time = after.startedAt.getTime()
    query = query.where((where) =>
      where.or([
        where('snapshots.created_at', '<', time),
        where.and([where('snapshots.created_at', '=', time), where('snapshots.id', '>', after.id)]),
      ]),
    )
  }
  return query.execute()
}

function readNames(db: Db, ids: readonly string[]) {
  return db
    .selectFrom('template_names')
    .select(['template_id', 'namespace', 'alias'])
    .where('template_id', 'in', ids)
    .orderBy('namespace')
    .orderBy('alias')
    .execute()
}

/** Pairs each tag with the build that it selects: the newest ready build that has the tag. */
async function readTags(db: Db, ids: readonly string[]) {
  const rows = await db
    .selectFrom('template_tags')
    .innerJoin('template_builds', 'template_builds.id', 'template_tags.build_id')
    .select(['template_tags.template_id', 'tag', 'build_id'])
    .where('template_tags.template_id', 'in', ids)
    .where('status', '=', 'ready')
    .orderBy('template_tags.created_at', 'desc')
    .orderBy('build_id')
    .execute()
  const seen = new Set<string>()
  return rows.filter(({ template_id, tag }) => {
    const key = `${template_id}:${tag}`
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}
