import type { Kysely, Transaction } from 'kysely'
import type { RunningSandbox, Sandbox } from '../domain/sandbox.ts'
import { isRunning } from '../domain/sandbox.ts'
import type { SandboxFilter, SandboxPage, SandboxStore } from '../domain/sandbox-store.ts'
import { batches } from './batches.ts'
import { fromRow, toRow, toState } from './sandbox-row.ts'
import type { SandboxRow, Schema } from './schema.ts'

type Db = Kysely<Schema>

export function sqlSandboxStore(db: Db): SandboxStore {
  return {
    insert: (sandbox, limit) =>
      db.transaction().execute((transaction) => insert(transaction, sandbox, limit)),
    find: (id) => find(db, id),
    update: (id, change) =>
      db.transaction().execute(async (transaction) => {
        const current = await find(transaction, id, 'locked')
        if (!current) return undefined
        const changed = change(current)
        const { id: _, ...columns } = toRow(changed)
        await transaction.updateTable('sandboxes').set(columns).where('id', '=', id).execute()
        if (isStart(current, changed)) await countSpawn(transaction, changed)
        return changed
      }),
    listRunning: (filter, page) => listRunning(db, filter, page),
    async countRunning(filter) {
      const { total } = await matching(db, filter)
        .select((select) => select.fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow()
      return total
    },
    async countRunningByTeam() {
      const rows = await db
        .selectFrom('sandboxes')
        .select((select) => ['team_id', select.fn.countAll<number>().as('total')])
        .where('state', '=', 'running')
        .groupBy('team_id')
        .execute()
      return new Map(rows.map(({ team_id, total }) => [team_id, total]))
    },
    async listByState(states) {
      const query = db.selectFrom('sandboxes').select(['id', 'state']).where('state', 'in', states)
      return (await query.execute()).map(({ id, state }) => ({ id, state: toState(state) }))
    },
    async listExpired(now, limit) {
      const rows = await db
        .selectFrom('sandboxes')
        .select('id')
        .where('state', '=', 'running')
        .where('end_at', '<=', now.getTime())
        .orderBy('end_at')
        .limit(limit)
        .execute()
      return rows.map(({ id }) => id)
    },
    async nextEnd() {
      const row = await db
        .selectFrom('sandboxes')
        .select('end_at')
        .where('state', '=', 'running')
        .orderBy('end_at')
        .limit(1)
        .executeTakeFirst()
      return typeof row?.end_at === 'number' ? new Date(row.end_at) : undefined
    },
    deleteEndedBefore: (time, limit) =>
      db.transaction().execute((transaction) => deleteEndedBefore(transaction, time, limit)),
  }
}

async function insert(
  db: Transaction<Schema>,
  sandbox: Sandbox,
  limit: number | undefined,
): Promise<boolean> {
  if (limit !== undefined && !(await hasRoom(db, sandbox.teamId, limit))) return false
  await db.insertInto('sandboxes').values(toRow(sandbox)).execute()
  const pairs = Object.entries(sandbox.metadata ?? {})
  const rows = pairs.map(([key, value]) => ({ sandbox_id: sandbox.id, key, value }))
  for (const batch of batches(rows)) await db.insertInto('sandbox_metadata').values(batch).execute()
  return true
}

/** The row of the team is held until the sandbox is in: those who come meanwhile count it. */
async function hasRoom(db: Transaction<Schema>, teamId: string, limit: number): Promise<boolean> {
  await db
    .selectFrom('teams')
    .select('id')
    .where('id', '=', teamId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  const { total } = await db
    .selectFrom('sandboxes')
    .select((select) => select.fn.countAll<number>().as('total'))
    .where('team_id', '=', teamId)
    .where('state', 'in', ['creating', 'running'])
    .executeTakeFirstOrThrow()
  return total < limit
}

function isStart(before: Sandbox, after: Sandbox): after is RunningSandbox {
  return before.state === 'creating' && isRunning(after)
}

/** Together with the start itself, so that the count is true whatever happens. */
async function countSpawn(db: Transaction<Schema>, sandbox: RunningSandbox): Promise<void> {
  await db
    .updateTable('templates')
    .set((set) => ({
      spawn_count: set('spawn_count', '+', 1),
      last_spawned_at: sandbox.startedAt.getTime(),
    }))
    .where('id', '=', sandbox.templateId)
    .execute()
}

async function find(db: Db, id: string, how?: 'locked'): Promise<Sandbox | undefined> {
  const query = db.selectFrom('sandboxes').selectAll().where('id', '=', id)
  const rows = await (how ? query.forUpdate() : query).execute()
  return (await withMetadata(db, rows))[0]
}

async function deleteEndedBefore(db: Db, time: Date, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('sandboxes')
    .select('id')
    .where('state', '=', 'ended')
    .where('ended_at', '<', time.getTime())
    .limit(limit)
    .forUpdate()
    .skipLocked() // another process is at those
    .execute()
  for (const ids of batches(rows.map(({ id }) => id))) {
    await db.deleteFrom('sandboxes').where('id', 'in', ids).execute()
  }
  return rows.length
}

async function listRunning(
  db: Db,
  filter: SandboxFilter,
  page?: SandboxPage,
): Promise<RunningSandbox[]> {
  const order = page?.order ?? 'desc'
  let query = matching(db, filter)
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
  return (await withMetadata(db, await query.execute())).filter(isRunning)
}

function matching(db: Db, { teamId, metadata, startedAfter, templateId }: SandboxFilter) {
  let query = db
    .selectFrom('sandboxes')
    .where('team_id', '=', teamId)
    .where('state', '=', 'running')
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

async function withMetadata(db: Db, rows: readonly SandboxRow[]): Promise<Sandbox[]> {
  const found = new Map<string, [string, string][]>()
  const ids = rows.filter((row) => row.has_metadata === 1).map((row) => row.id)
  for (const batch of batches(ids)) {
    const pairs = await db
      .selectFrom('sandbox_metadata')
      .selectAll()
      .where('sandbox_id', 'in', batch)
      .execute()
    for (const { sandbox_id: id, key, value } of pairs) {
      found.set(id, [...(found.get(id) ?? []), [key, value]])
    }
  }
  return rows.map((row) => fromRow(row, Object.fromEntries(found.get(row.id) ?? [])))
}
