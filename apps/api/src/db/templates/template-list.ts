import type { Kysely, Selectable } from 'kysely'
import { defaultTag } from '../../domain/template.ts'
import type { ListedTemplate, TemplatePage } from '../../domain/template.ts'
import { batches } from '../batches.ts'
import { toStatus } from '../builds/build-rows.ts'
import type { BuildRow } from '../builds/build-rows.ts'
import type { Schema, TemplateNameRow, TemplateRow } from '../schema.ts'

/** Reads one page of templates, then their builds, names and build counts. */
export async function listTemplates(
  db: Kysely<Schema>,
  teamId: string,
  page: TemplatePage,
): Promise<ListedTemplate[]> {
  const rows = await readPage(db, teamId, page)
  const builds: BuildRow[] = []
  const names: TemplateNameRow[] = []
  const counts = new Map<string, number>()
  for (const ids of batches(rows.map(({ id }) => id))) {
    builds.push(...(await readDefaultBuilds(db, ids)))
    names.push(...(await readNames(db, ids)))
    for (const { template_id, total } of await countBuilds(db, ids)) counts.set(template_id, total)
  }
  const buildsOf = Map.groupBy(builds, ({ template_id }) => template_id)
  const namesOf = Map.groupBy(names, ({ template_id }) => template_id)
  return rows.map((row) => ({
    ...fromRow(row),
    names: (namesOf.get(row.id) ?? []).map(toName),
    buildCount: counts.get(row.id) ?? 0,
    ...chooseBuild(buildsOf.get(row.id) ?? []),
  }))
}

type Row = Selectable<TemplateRow> & { email: string | null }

function readPage(
  db: Kysely<Schema>,
  teamId: string,
  { order, limit, after, id }: TemplatePage,
): Promise<Row[]> {
  let query = db
    .selectFrom('templates')
    .leftJoin('users', 'users.id', 'templates.created_by')
    .selectAll('templates')
    .select('users.email')
    .where((where) => where.or([where('team_id', '=', teamId), where('team_id', 'is', null)]))
    .where('is_snapshot', '=', 0)
    .orderBy('templates.created_at', order)
    .orderBy('templates.id', order === 'desc' ? 'asc' : 'desc')
  if (limit !== undefined) query = query.limit(limit)
  if (id !== undefined) query = query.where('templates.id', '=', id)
  if (after) {
    const time = after.startedAt.getTime()
    query = query.where((where) =>
      where.or([
        where('templates.created_at', order === 'desc' ? '<' : '>', time),
        where.and([
          where('templates.created_at', '=', time),
          where('templates.id', order === 'desc' ? '>' : '<', after.id),
        ]),
      ]),
    )
  }
  return query.execute()
}

/** Newest first. */
function readDefaultBuilds(db: Kysely<Schema>, ids: readonly string[]) {
  return db
    .selectFrom('template_tags')
    .innerJoin('template_builds', 'template_builds.id', 'template_tags.build_id')
    .selectAll('template_builds')
    .where('template_tags.template_id', 'in', ids)
    .where('tag', '=', defaultTag)
    .orderBy('template_tags.created_at', 'desc')
    .execute()
}

function readNames(db: Kysely<Schema>, ids: readonly string[]) {
  return db
    .selectFrom('template_names')
    .selectAll()
    .where('template_id', 'in', ids)
    .orderBy('namespace')
    .orderBy('alias')
    .execute()
}

function countBuilds(db: Kysely<Schema>, ids: readonly string[]) {
  return db
    .selectFrom('template_builds')
    .select(({ fn }) => ['template_id', fn.countAll<number>().as('total')])
    .where('template_id', 'in', ids)
    .groupBy('template_id')
    .execute()
}

function fromRow(row: Row) {
  return {
    id: row.id,
    public: row.public === 1,
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
    createdBy: row.created_by === null ? undefined : { id: row.created_by, email: row.email },
    lastSpawnedAt: row.last_spawned_at === null ? undefined : new Date(row.last_spawned_at),
    spawnCount: row.spawn_count,
  }
}

function toName({ namespace, alias }: TemplateNameRow) {
  return { namespace, alias }
}

function chooseBuild(newestFirst: readonly BuildRow[]) {
  const ready = newestFirst.find(({ status }) => status === 'ready')
  return {
    buildStatus: toStatus(newestFirst[0]?.status ?? 'waiting'),
    ready: ready && {
      id: ready.id,
      resources: {
        cpuCount: ready.cpu_count,
        memoryMb: ready.memory_mb,
        diskSizeMb: ready.disk_size_mb,
      },
      envdVersion: ready.envd_version ?? undefined,
    },
  }
}
