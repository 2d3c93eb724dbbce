import type { Kysely, Selectable } from 'kysely'
import type { Build, BuildFailure } from '../../domain/builds/build.ts'
import { buildStatuses } from '../../domain/template.ts'
import type { BuildStatus } from '../../domain/template.ts'
import { batches } from '../batches.ts'
import type { Schema, TemplateBuildRow } from '../schema.ts'

export type BuildRow = Selectable<TemplateBuildRow>

export function toBuild(row: BuildRow & { team_id: string | null }): Build {
  return {
    id: row.id,
    templateId: row.template_id,
    teamId: row.team_id ?? undefined,
    status: toStatus(row.status),
    resources: {
      cpuCount: row.cpu_count,
      memoryMb: row.memory_mb,
      diskSizeMb: row.disk_size_mb,
    },
    envdVersion: row.envd_version ?? undefined,
    failure:
      row.failure === null
        ? undefined
        : { message: row.failure, step: row.failed_step ?? undefined },
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
    finishedAt: row.finished_at === null ? undefined : new Date(row.finished_at),
  }
}

export function toStatus(text: string): BuildStatus {
  const status = buildStatuses.find((known) => known === text)
  if (status) return status
  throw new Error(
    `The store has a build with the unknown status ${text}. Start the release of Atoll that wrote it`,
  )
}

/** Finds waiting and running builds of a template that have one of these tags. */
export function buildsInProgress(db: Kysely<Schema>, templateId: string, tags: readonly string[]) {
  return db
    .selectFrom('template_builds')
    .select(['id', 'status'])
    .where('template_id', '=', templateId)
    .where('status', 'in', ['waiting', 'building'])
    .where('id', 'in', (query) =>
      query
        .selectFrom('template_tags')
        .select('build_id')
        .where('template_id', '=', templateId)
        .where('tag', 'in', tags),
    )
    .execute()
}

/** Keeps the holders of the builds. */
export async function failBuilds(
  db: Kysely<Schema>,
  ids: readonly string[],
  failure: BuildFailure,
  now: Date,
): Promise<void> {
  for (const batch of batches(ids)) {
    await db
      .updateTable('template_builds')
      .set(toFailed(failure, now))
      .where('id', 'in', batch)
      .execute()
  }
}

export function toFailed({ message, step }: BuildFailure, now: Date) {
  return {
    status: 'error',
    failure: message,
    failed_step: step ?? null,
    updated_at: now.getTime(),
    finished_at: now.getTime(),
  }
}
