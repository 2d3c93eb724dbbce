import type { Kysely } from 'kysely'
import type { SandboxState } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxFilter, SandboxPage } from '../../domain/sandboxes/sandbox-store.ts'
import type { SandboxRow, Schema } from '../schema.ts'

type Db = Kysely<Schema>

/** Runs one statement, so that a sandbox that changes its state meanwhile is neither missed nor listed twice. */
export async function listRows(
  db: Db,
  filter: SandboxFilter,
  page?: SandboxPage,
): Promise<SandboxRow[]> {
  const order = page?.order ?? 'desc'
  const [first, ...others] = filter.states.map((state) => inState(db, filter, state, page))
  if (!first) return []
  let query = others
    .reduce((all, other) => all.unionAll(other), first)
    .orderBy('started_at', order)
    .orderBy('id', order === 'desc' ? 'asc' : 'desc')
  if (page) query = query.limit(page.limit)
  return query.execute()
}

export async function countRows(db: Db, filter: SandboxFilter): Promise<number> {
  const { total } = await matching(db, filter)
    .where('state', 'in', filter.states)
    .select((select) => select.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

/** Reads the page of one state, so that the index provides the order and few rows are read. */
function inState(db: Db, filter: SandboxFilter, state: SandboxState, page?: SandboxPage) {
  const order = page?.order ?? 'desc'
  let query = matching(db, filter)
    .where('state', '=', state)
    .selectAll('sandboxes')
    .orderBy('started_at', order)
    .orderBy('id', order === 'desc' ? 'asc' : 'desc')
  if (page) query = query.limit(page.limit)
  const after = page?.after
  if (after) {
    const time = after.startedAt.getTime()
    query = query.where((where) =>
      where.or([
        where('started_at', order === 'desc' ? '<' : '>', time),
        where.and([
          where('started_at', '=', time),
          where('id', order === 'desc' ? '>' : '<', after.id),
        ]),
      ]),
    )
  }
  return db.selectFrom(query.as('one')).selectAll()
}

function matching(db: Db, { teamId, metadata, startedAfter, templateId }: SandboxFilter) {
  let query = db.selectFrom('sandboxes').where('team_id', '=', teamId)
  if (startedAfter) query = query.where('started_at', '>=', startedAfter.getTime())
  if (templateId !== undefined) query = query.where('template_id', '=', templateId)
  for (const [key, value] of Object.entries(metadata ?? {})) {
    query = query.where((where) =>
      where.exists(
        where
          .selectFrom('sandbox_metadata')
          .select('sandbox_metadata.key')
          .whereRef('sandbox_metadata.sandbox_id', '=', 'sandboxes.id')
          .where('sandbox_metadata.key', '=', key)
          .where('sandbox_metadata.value', '=', value),
      ),
    )
  }
  return query
}
