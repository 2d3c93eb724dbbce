import { Fault } from '@atoll/kit/fault'
import { newTemplateId } from '@atoll/kit/id'
import type { Kysely, Transaction } from 'kysely'
import type { TemplateName } from '../../domain/template.ts'
import type { Schema } from '../schema.ts'

/** Finds a template by name. Throws a fault when the name is free but equals the ID of a template. */
export async function findNamedTemplate(db: Kysely<Schema>, name: TemplateName) {
  const named = await db
    .selectFrom('template_names')
    .innerJoin('templates', 'templates.id', 'template_names.template_id')
    .select(['templates.id', 'team_id', 'is_snapshot'])
    .where('namespace', '=', name.namespace)
    .where('alias', '=', name.alias)
    .executeTakeFirst()
  if (named) return named
  const sameId = await db
    .selectFrom('templates')
    .select('id')
    .where('id', '=', name.alias)
    .executeTakeFirst()
  if (sameId) throw nameTaken(`The name ${name.alias} is the id of a template`)
  return undefined
}

export function nameTaken(what: string): Fault {
  return new Fault('conflict', 'name_taken', `${what}: choose another name`)
}

export interface NewTemplate {
  readonly teamId: string
  readonly userId?: string | undefined
  readonly isSnapshot: boolean
  readonly name: TemplateName | undefined
}

/** Inserts a template without a build and returns its ID. */
export async function insertTemplate(
  db: Transaction<Schema>,
  { teamId, userId, isSnapshot, name }: NewTemplate,
  now: Date,
): Promise<string> {
  const id = newTemplateId()
  const created_at = now.getTime()
  await db
    .insertInto('templates')
    .values({
      id,
      team_id: teamId,
      public: 0,
      is_snapshot: isSnapshot ? 1 : 0,
      created_by: userId ?? null,
      created_at,
      updated_at: created_at,
      spawn_count: 0,
      last_spawned_at: null,
    })
    .execute()
  if (name) {
    await db
      .insertInto('template_names')
      .values({ ...name, template_id: id, created_at })
      .execute()
  }
  return id
}
