import { Fault } from '@atoll/kit/fault'
import type { Transaction } from 'kysely'
import type { TemplateName } from '../../domain/template.ts'
import type { Schema } from '../schema.ts'

export async function publishTemplate(
  db: Transaction<Schema>,
  templateId: string,
  how: { readonly public: boolean; readonly bare: boolean },
  now: Date,
): Promise<TemplateName[]> {
  await db
    .updateTable('templates')
    .set({ public: how.public ? 1 : 0, updated_at: now.getTime() })
    .where('id', '=', templateId)
    .execute()
  if (how.bare) {
    const names = await readNames(db, templateId)
    for (const alias of new Set(names.map((name) => name.alias))) {
      await takeBareName(db, { alias, template_id: templateId, created_at: now.getTime() })
    }
  }
  return readNames(db, templateId)
}

async function takeBareName(
  db: Transaction<Schema>,
  row: { alias: string; template_id: string; created_at: number },
): Promise<void> {
  await db
    .insertInto('template_names')
    .values({ namespace: '', ...row })
    .onConflict((conflict) => conflict.columns(['namespace', 'alias']).doNothing())
    .execute()
  const { template_id } = await db
    .selectFrom('template_names')
    .select('template_id')
    .where('namespace', '=', '')
    .where('alias', '=', row.alias)
    .executeTakeFirstOrThrow()
  if (template_id === row.template_id) return
  const message = `The name ${row.alias} without a namespace belongs to another template: publish it by PATCH /v2/templates/{templateID}`
  throw new Fault('conflict', 'name_taken', message)
}

function readNames(db: Transaction<Schema>, templateId: string): Promise<TemplateName[]> {
  return db
    .selectFrom('template_names')
    .select(['namespace', 'alias'])
    .where('template_id', '=', templateId)
    .orderBy('namespace')
    .orderBy('alias')
    .execute()
}
