import type { Kysely, Transaction } from 'kysely'
import { failures } from '../../domain/builds/build.ts'
import type { Build, BuildOutcome, BuildStore } from '../../domain/builds/build.ts'
import { batches } from '../batches.ts'
import { issueFiles } from '../issued-files.ts'
import { requestBuild } from './build-request.ts'
import { collectBuild, findUnusedBuilds } from './collect-builds.ts'
import { buildsInProgress, failBuilds, toBuild, toFailed, toStatus } from './build-rows.ts'
import type { Schema } from '../schema.ts'

type Db = Kysely<Schema>

export function sqlBuildStore(db: Db): BuildStore {
  return {
    request: (wanted, check, now) =>
      db.transaction().execute((transaction) => requestBuild(transaction, wanted, check, now)),
    async find(id) {
      const row = await builds(db).where('template_builds.id', '=', id).executeTakeFirst()
      return row && toBuild(row)
    },
    list: (templateId, page) => list(db, templateId, page),
    begin: (id, by, now) =>
      db.transaction().execute((transaction) => begin(transaction, id, by, now)),
    finish: (id, holder, outcome, now) =>
      db.transaction().execute((transaction) => finish(transaction, { id, holder, outcome, now })),
    async listHeld() {
      const rows = await db
        .selectFrom('template_builds')
        .select(['id', 'holder', 'status'])
        .where('holder', 'is not', null)
        .$narrowType<{ holder: string }>()
        .execute()
      return rows.map(({ id, holder, status }) => ({ id, holder, status: toStatus(status) }))
    },
    async failWaiting(time, failure, now) {
      await db
        .updateTable('template_builds')
        .set(toFailed(failure, now))
        .where('status', '=', 'waiting')
        .where('created_at', '<', time.getTime())
        .execute()
    },
    listFiles: (teamId) => listFiles(db, teamId),
    findHome: (teamId) => findHome(db, teamId),
    findUnused: (time, limit) => findUnusedBuilds(db, time, limit),
    collect: (id, times) =>
      db.transaction().execute((transaction) => collectBuild(transaction, id, times)),
    async markDurable(nodeTemplateIds) {
      for (const batch of batches(nodeTemplateIds)) await setDurable(db, batch, 1).execute()
    },
    async clearDurable(nodeId, nodeTemplateIds) {
      for (const batch of batches(nodeTemplateIds)) {
        await setDurable(db, batch, 0).where('node_id', '=', nodeId).execute()
      }
    },
    async known(nodeTemplateIds) {
      const found = new Set<string>()
      for (const batch of batches(nodeTemplateIds)) {
        const rows = await db
          .selectFrom('template_builds')
          .select('node_template_id')
          .where('node_template_id', 'in', batch)
          .$narrowType<{ node_template_id: string }>()
          .execute()
        for (const row of rows) found.add(row.node_template_id)
      }
      return found
    },
  }
}

function setDurable(db: Db, nodeTemplateIds: readonly string[], isDurable: 0 | 1) {
  return (
    db
      .updateTable('template_builds')
      .set({ is_durable: isDurable })
      .where('node_template_id', 'in', nodeTemplateIds)
      .where('is_durable', '<>', isDurable)
      // A snapshot names the template of its sandbox, and needs files of its own.
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('snapshots')
              .select('snapshots.id')
              .whereRef('snapshots.build_id', '=', 'template_builds.id'),
          ),
        ),
      )
  )
}

async function list(
  db: Db,
  templateId: string,
  { limit, after }: Parameters<BuildStore['list']>[1],
): Promise<Build[]> {
  let query = builds(db)
    .where('template_id', '=', templateId)
    .orderBy('template_builds.created_at', 'desc')
    .orderBy('template_builds.id')
    .limit(limit)
  if (after) {
    const time = after.startedAt.getTime()
    query = query.where((where) =>
      where.or([
        where('template_builds.created_at', '<', time),
        where.and([
          where('template_builds.created_at', '=', time),
          where('template_builds.id', '>', after.id),
        ]),
      ]),
    )
  }
  return (await query.execute()).map(toBuild)
}

function builds(db: Db) {
  return db
    .selectFrom('template_builds')
    .innerJoin('templates', 'templates.id', 'template_builds.template_id')
    .selectAll('template_builds')
    .select('templates.team_id')
}

async function listFiles(db: Kysely<Schema>, teamId: string) {
  const rows = await filesOf(db, teamId).select('node_template_id').execute()
  return rows.flatMap(({ node_template_id: nodeTemplateId, node_id }) =>
    nodeTemplateId === null ? [] : [{ nodeTemplateId, nodeId: node_id ?? undefined }],
  )
}

async function findHome(db: Kysely<Schema>, teamId: string): Promise<string | undefined> {
  const row = await filesOf(db, teamId)
    .where('node_id', 'is not', null)
    .orderBy('template_builds.created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.node_id ?? undefined
}

/** Selects the builds of a team that have files on a node. */
function filesOf(db: Kysely<Schema>, teamId: string) {
  return db
    .selectFrom('template_builds')
    .innerJoin('templates', 'templates.id', 'template_builds.template_id')
    .select('node_id')
    .where('team_id', '=', teamId)
    .where('is_snapshot', '=', 0)
    .where('node_template_id', 'is not', null)
}

async function begin(
  db: Transaction<Schema>,
  id: string,
  { holder, nodeId, nodeTemplateId }: Parameters<BuildStore['begin']>[1],
  now: Date,
): Promise<boolean> {
  const templateId = await lockTemplateOf(db, id)
  if (templateId === undefined) return false
  const { numUpdatedRows } = await db
    .updateTable('template_builds')
    .set({
      status: 'building',
      holder,
      node_template_id: nodeTemplateId,
      node_id: nodeId,
      updated_at: now.getTime(),
    })
    .where('id', '=', id)
    .where('status', '=', 'waiting')
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  await issueFiles(db, nodeTemplateId)
  await failBuilds(db, await othersUnderway(db, id, templateId), failures.cancelled, now)
  return true
}

/**
 * Locks the template: serializes changes to its builds, so that of two concurrent starts the later one sees the other.
 */
async function lockTemplateOf(db: Transaction<Schema>, id: string): Promise<string | undefined> {
  const build = await db
    .selectFrom('template_builds')
    .select('template_id')
    .where('id', '=', id)
    .executeTakeFirst()
  if (!build) return undefined
  const { template_id } = build
  await db
    .selectFrom('templates')
    .select('id')
    .where('id', '=', template_id)
    .forNoKeyUpdate()
    .execute()
  return template_id
}

/** Finds other running builds that share a tag with this one. */
async function othersUnderway(db: Db, id: string, templateId: string): Promise<string[]> {
  const tags = await db
    .selectFrom('template_tags')
    .select('tag')
    .where('build_id', '=', id)
    .execute()
  if (tags.length === 0) return []
  const sameTag = await buildsInProgress(
    db,
    templateId,
    tags.map(({ tag }) => tag),
  )
  return sameTag.filter((one) => one.id !== id && one.status === 'building').map((one) => one.id)
}

interface Finish {
  readonly id: string
  readonly holder: string
  readonly outcome: BuildOutcome
  readonly now: Date
}

async function finish(
  db: Transaction<Schema>,
  { id, holder, outcome, now }: Finish,
): Promise<boolean> {
  const templateId = await lockTemplateOf(db, id)
  if (templateId === undefined) return false
  const { numUpdatedRows } = await db
    .updateTable('template_builds')
    .set({ holder: null, ...('failure' in outcome ? leave(outcome, now) : keep(outcome, now)) })
    .where('id', '=', id)
    .where('holder', '=', holder)
    .where('status', '=', 'building')
    .executeTakeFirst()
  if (numUpdatedRows === 0n) {
    await db
      .updateTable('template_builds')
      .set({ holder: null, node_template_id: null })
      .where('id', '=', id)
      .where('holder', '=', holder)
      .execute()
    return false
  }
  await db
    .updateTable('templates')
    .set({ updated_at: now.getTime() })
    .where('id', '=', templateId)
    .execute()
  return true
}

function keep({ resources }: Extract<BuildOutcome, { resources: unknown }>, now: Date) {
  return {
    status: 'ready',
    cpu_count: resources.cpuCount,
    memory_mb: resources.memoryMb,
    disk_size_mb: resources.diskSizeMb,
    updated_at: now.getTime(),
    finished_at: now.getTime(),
  }
}

function leave({ failure }: Extract<BuildOutcome, { failure: unknown }>, now: Date) {
  return { ...toFailed(failure, now), node_template_id: null }
}
