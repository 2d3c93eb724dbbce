import { randomUUID } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import type { Transaction } from 'kysely'
import { failures } from '../../domain/builds/build.ts'
import type { RequestedBuild, WantedBuild } from '../../domain/builds/build.ts'
import { nameOf } from '../../domain/template.ts'
import type { TemplateName } from '../../domain/template.ts'
import { buildsInProgress, failBuilds } from './build-rows.ts'
import { findNamedTemplate, insertTemplate, nameTaken } from '../templates/named-template.ts'
import type { Schema } from '../schema.ts'
import { assignTag } from '../templates/template-tags.ts'

type Db = Transaction<Schema>

/** Inserts a waiting build, and its template if there is none yet. */
export async function requestBuild(
  db: Db,
  wanted: WantedBuild,
  check: (others: number) => void,
  now: Date,
): Promise<RequestedBuild> {
  const { teamId, tags, resources } = wanted
  // Lock the team: serializes concurrent requests for the same new name or for the last free place.
  await db.selectFrom('teams').select('id').where('id', '=', teamId).forNoKeyUpdate().execute()
  const templateId = await ensureTemplate(db, wanted, now)
  const sameTag = await buildsInProgress(db, templateId, tags)
  const waiting = sameTag.filter(({ status }) => status === 'waiting').map(({ id }) => id)
  await failBuilds(db, waiting, failures.superseded, now)
  check((await countInProgress(db, teamId)) - (sameTag.length - waiting.length))

  const id = randomUUID()
  const created_at = now.getTime()
  await db
    .insertInto('template_builds')
    .values({
      id,
      template_id: templateId,
      status: 'waiting',
      node_template_id: null,
      cpu_count: resources.cpuCount,
      memory_mb: resources.memoryMb,
      disk_size_mb: resources.diskSizeMb,
      envd_version: null,
      created_at,
      updated_at: created_at,
      finished_at: null,
    })
    .execute()
  for (const tag of tags) await assignTag(db, { template_id: templateId, tag, build_id: id }, now)
  return { id, templateId, ...(await readTemplate(db, templateId)) }
}

async function ensureTemplate(db: Db, { of, teamId, userId }: WantedBuild, now: Date) {
  if (of && 'templateId' in of) return findOwn(db, of.templateId, teamId)
  const known = of && (await findNamed(db, of, teamId))
  return known ?? insertTemplate(db, { teamId, userId, isSnapshot: false, name: of }, now)
}

/** Locks the template against deletion. */
async function findOwn(db: Db, templateId: string, teamId: string): Promise<string> {
  const row = await db
    .selectFrom('templates')
    .select('id')
    .where('id', '=', templateId)
    .where('team_id', '=', teamId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (row) return row.id
  throw new Fault('not_found', 'template_not_found', `Template ${templateId} was deleted`)
}

async function findNamed(db: Db, name: TemplateName, teamId: string): Promise<string | undefined> {
  const named = await findNamedTemplate(db, name)
  if (!named) return undefined
  if (named.team_id !== teamId) {
    throw new Fault('forbidden', 'template_forbidden', `${nameOf(name)} belongs to another team`)
  }
  if (named.is_snapshot === 1) throw nameTaken(`The name ${nameOf(name)} belongs to a snapshot`)
  return findOwn(db, named.id, teamId)
}

async function countInProgress(db: Db, teamId: string): Promise<number> {
  const { total } = await db
    .selectFrom('template_builds')
    .innerJoin('templates', 'templates.id', 'template_builds.template_id')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('team_id', '=', teamId)
    .where('status', 'in', ['waiting', 'building'])
    .executeTakeFirstOrThrow()
  return total
}

async function readTemplate(db: Db, id: string) {
  const row = await db
    .selectFrom('templates')
    .select('public')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const names = await db
    .selectFrom('template_names')
    .select(['namespace', 'alias'])
    .where('template_id', '=', id)
    .orderBy('namespace')
    .orderBy('alias')
    .execute()
  return { public: row.public === 1, names }
}
