import type { Kysely } from 'kysely'
import { defaultTag, isBuildId } from '../../domain/template.ts'
import type { LocatedTemplate, Template, TemplateReference } from '../../domain/template.ts'
import type { Schema } from '../schema.ts'

type Db = Kysely<Schema>

export async function locateTemplate(
  db: Db,
  { namespace, name }: Pick<TemplateReference, 'namespace' | 'name'>,
  teamId: string,
): Promise<LocatedTemplate | undefined> {
  const named = db
    .selectFrom('template_names')
    .innerJoin('templates', 'templates.id', 'template_names.template_id')
    .select(['templates.id', 'team_id', 'public', 'is_snapshot'])
    .where('alias', '=', name)
  if (namespace !== undefined) {
    const row = await named.where('namespace', '=', namespace).executeTakeFirst()
    return row && toLocated(row)
  }
  const row = await named
    .where((where) =>
      where.or([
        where('namespace', '=', ''),
        where(
          'namespace',
          '=',
          where.selectFrom('teams').select('slug').where('teams.id', '=', teamId),
        ),
      ]),
    )
    .orderBy('namespace', 'desc') // own namespace first: that of the installation is empty
    .limit(1)
    .executeTakeFirst()
  return row ? toLocated(row) : byId(db, name)
}

async function byId(db: Db, id: string): Promise<LocatedTemplate | undefined> {
  const row = await db
    .selectFrom('templates')
    .select(['id', 'team_id', 'public', 'is_snapshot'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row && toLocated(row)
}

function toLocated(row: {
  id: string
  team_id: string | null
  public: number
  is_snapshot: number
}): LocatedTemplate {
  return {
    id: row.id,
    teamId: row.team_id ?? undefined,
    public: row.public === 1,
    isSnapshot: row.is_snapshot === 1,
  }
}

export async function findBuild(
  db: Db,
  templateId: string,
  tag: string = defaultTag,
): Promise<Template | undefined> {
  if (isBuildId(tag)) {
    const build = await findBuildById(db, tag)
    return build?.id === templateId ? build : undefined
  }
  const row = await builds(db)
    .innerJoin('template_tags', 'template_tags.build_id', 'template_builds.id')
    .where('template_tags.template_id', '=', templateId)
    .where('tag', '=', tag)
    .orderBy('template_tags.created_at', 'desc')
    .orderBy('namespace')
    .orderBy('alias')
    .limit(1)
    .executeTakeFirst()
  return row && toTemplate(row)
}

export async function findBuildById(db: Db, buildId: string): Promise<Template | undefined> {
  const row = await builds(db)
    .where('template_builds.id', '=', buildId)
    .orderBy('namespace')
    .orderBy('alias')
    .limit(1)
    .executeTakeFirst()
  return row && toTemplate(row)
}

/** Selects ready builds, one row per name; the callers sort names of the installation first. */
function builds(db: Db) {
  return db
    .selectFrom('template_builds')
    .innerJoin('templates', 'templates.id', 'template_builds.template_id')
    .leftJoin('snapshots', 'snapshots.build_id', 'template_builds.id')
    .leftJoin('template_names', 'template_names.template_id', 'templates.id')
    .select(['templates.id', 'templates.public', 'template_builds.id as build_id', 'alias'])
    .select(['node_template_id', 'cpu_count', 'memory_mb', 'disk_size_mb'])
    .select(['snapshots.id as snapshot_id', 'envd_version', 'template_builds.node_id'])
    .select('is_durable')
    .select(['snapshots.sandbox_id', 'snapshots.team_id as snapshot_team_id'])
    .where('status', '=', 'ready')
}

type BuildRow = NonNullable<Awaited<ReturnType<ReturnType<typeof builds>['executeTakeFirst']>>>

function toTemplate(row: BuildRow): Template | undefined {
  if (row.node_template_id === null) return undefined
  return {
    id: row.id,
    buildId: row.build_id,
    alias: row.alias ?? undefined,
    public: row.public === 1,
    nodeTemplateId: row.node_template_id,
    snapshotId: row.snapshot_id ?? undefined,
    snapshotOf:
      row.sandbox_id === null || row.snapshot_team_id === null
        ? undefined
        : { sandboxId: row.sandbox_id, teamId: row.snapshot_team_id },
    nodeId: row.node_id ?? undefined,
    isDurable: row.is_durable === 1,
    envdVersion: row.envd_version ?? undefined,
    resources: {
      cpuCount: row.cpu_count,
      memoryMb: row.memory_mb,
      diskSizeMb: row.disk_size_mb,
    },
  }
}
