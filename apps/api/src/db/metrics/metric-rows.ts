import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Start of the step that contains a sample. The length is a literal, not a parameter: the databases must know that it is
 * an integer.
 */
export function stepStart(stepSeconds: number) {
  return sql<number>`${sql.ref('at')} - ${sql.ref('at')} % ${sql.lit(stepSeconds)}`
}

/** Sorts rows by key, so that processes that write the same rows concurrently cannot deadlock. */
export function inKeyOrder(a: RowKey, b: RowKey): number {
  if (a[0] !== b[0]) return a[0] < b[0] ? -1 : 1
  return a[1] - b[1]
}

type RowKey = readonly [id: string, at: number]

/** Time span of one delete. */
const spanSeconds = 300
/**
 * Rows of one delete, and those of the same moment as the last of them. A large fleet writes millions of samples in the time
 * span, and their delete would run into the time limit of statements.
 */
const mostRows = 10_000

/** Deletes the oldest samples before `time`. Returns whether more may remain. */
export async function deleteOldest(
  db: Kysely<Schema>,
  table: 'team_metrics' | 'sandbox_metrics',
  time: number,
): Promise<boolean> {
  const inOrder = db.selectFrom(table).select('at').orderBy('at').limit(1)
  const oldest = await inOrder.executeTakeFirst()
  if (!oldest || oldest.at >= time) return false
  const beyond = await inOrder.offset(mostRows).executeTakeFirst()
  const bound = beyond ? Math.max(beyond.at, oldest.at + 1) : time
  const until = Math.min(time, oldest.at + spanSeconds, bound)
  await db.deleteFrom(table).where('at', '<', until).execute()
  return until < time
}
