import { sql } from 'kysely'
import type { Expression, Kysely } from 'kysely'
import { statesShownAs } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxState } from '../../domain/sandboxes/sandbox.ts'
import type { SortedList } from '../../domain/sandboxes/sandbox-sort.ts'
import type { SandboxFilter, SandboxPage } from '../../domain/sandboxes/sandbox-store.ts'
import type { SandboxRow, Schema } from '../schema.ts'
import { toState } from './sandbox-row.ts'

type Db = Kysely<Schema>
type Rank = number | string

const newestFirst: SortedList = { sort: 'started', order: 'desc', sampledUntil: 0 }

/** Runs one statement, so that a sandbox that changes its state meanwhile is neither missed nor listed twice. */
export async function listRows(
  db: Db,
  filter: SandboxFilter,
  page?: SandboxPage,
): Promise<(SandboxRow & { readonly rank: Rank })[]> {
  const { order } = page ?? newestFirst
  const [first, ...others] = filter.states.map((state) => inState(db, filter, state, page))
  if (!first) return []
  let query = others
    .reduce((all, other) => all.unionAll(other), first)
    .orderBy('rank', order)
    .orderBy('id', order === 'desc' ? 'asc' : 'desc')
  if (page) query = query.limit(page.limit)
  return query.execute()
}

export async function countRows(
  db: Db,
  filter: SandboxFilter,
): Promise<ReadonlyMap<SandboxState, number>> {
  const rows = await matching(db, filter)
    .where('state', 'in', filter.states)
    .select((select) => ['state', select.fn.countAll<number>().as('total')])
    .groupBy('state')
    .execute()
  return new Map(rows.map(({ state, total }) => [toState(state), total]))
}

/** Reads the page of one state. By start time, the index provides the order and few rows are read. */
function inState(db: Db, filter: SandboxFilter, state: SandboxState, page?: SandboxPage) {
  const list = page ?? newestFirst
  const [before, beforeId] = list.order === 'desc' ? (['<', '>'] as const) : (['>', '<'] as const)
  const rank = rankOf(list, state)
  let query = matching(db, filter)
    .where('state', '=', state)
    .selectAll('sandboxes')
    .select(rank.as('rank'))
    .orderBy(rank, list.order)
    .orderBy('id', list.order === 'desc' ? 'asc' : 'desc')
  if (page) query = query.limit(page.limit)
  const after = page?.after
  if (after) {
    query = query.where((where) =>
      where.or([
        where(rank, before, after.rank),
        where.and([where(rank, '=', after.rank), where('id', beforeId, after.id)]),
      ]),
    )
  }
  return db.selectFrom(query.as('one')).selectAll()
}

/** Returns the value that sandboxes of a state are sorted by. Null never occurs: it compares with nothing. */
function rankOf({ sort, sampledUntil }: SortedList, state: SandboxState) {
  if (sort === 'started') return sql<Rank>`started_at`
  if (sort === 'ends') {
    return state === 'ended' ? sql<Rank>`coalesce(ended_at, 0)` : sql<Rank>`coalesce(end_at, 0)`
  }
  if (sort === 'state') {
    return sql<Rank>`cast(started_at + ${stateRank(state)} as double precision)`
  }
  if (sort === 'template') return sql<Rank>`coalesce(alias, template_id)`
  const column = sql.ref(sort === 'cpu' ? 'cpu_used_percent' : 'memory_used_bytes')
  const value: Expression<unknown> = runningStates.has(state)
    ? sql`coalesce((select ${column} from sandbox_metrics
        where sandbox_metrics.sandbox_id = sandboxes.id and sandbox_metrics.at <= ${sampledUntil}
        order by sandbox_metrics.at desc limit 1), -1)`
    : sql`-1`
  return sql<Rank>`cast(${value} as double precision)`
}

/** Start times in milliseconds stay below this until the year 2286, and sums stay exact in a double. */
const beyondStartTimes = 1e13

function stateRank(state: SandboxState): number {
  if (runningStates.has(state)) return 2 * beyondStartTimes
  return state === 'ended' ? 0 : beyondStartTimes
}

const runningStates: ReadonlySet<SandboxState> = new Set(statesShownAs('running'))

function matching(db: Db, { teamId, metadata, startedAfter, templateId, words }: SandboxFilter) {
  let query = db.selectFrom('sandboxes').where('team_id', '=', teamId)
  if (startedAfter) query = query.where('started_at', '>=', startedAfter.getTime())
  if (templateId !== undefined) query = query.where('template_id', '=', templateId)
  for (const word of words ?? []) query = query.where(contains(word))
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

/** Lower case is the database's on both sides: SQLite knows it for ASCII alone. */
function contains(word: string) {
  const pattern = `%${word.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  const like = (text: Expression<unknown>) =>
    sql<boolean>`lower(${text}) like lower(${pattern}) escape '\\'`
  const pair = sql`sandbox_metadata.key || '=' || sandbox_metadata.value`
  return sql<boolean>`(${like(sql`sandboxes.id`)} or ${like(sql`sandboxes.template_id`)}
    or ${like(sql`coalesce(sandboxes.alias, '')`)}
    or exists (select 1 from sandbox_metadata
      where sandbox_metadata.sandbox_id = sandboxes.id and ${like(pair)}))`
}
