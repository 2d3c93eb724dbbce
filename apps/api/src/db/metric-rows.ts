import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import type { Schema } from './schema.ts'

/** Where the step of a sample begins. The length is written out, since databases divide only what they know is whole. */
export function stepStart(stepSeconds: number) {
  return sql<number>`${sql.ref('at')} - ${sql.ref('at')} % ${sql.lit(stepSeconds)}`
}

/** Processes that write the same rows at once do it in the same order: so none waits for another that waits for it. */
export function inKeyOrder(a: RowKey, b: RowKey): number {
  if (a[0] !== b[0]) return a[0] < b[0] ? -1 : 1
  return a[1] - b[1]
}

type RowKey = readonly [id: string, at: number]

/** How much of the past is deleted at once: a share of time bounds the rows as well, whatever the number of sandboxes. */
const spanSeconds = 300

/** Deletes the oldest samples up to `time`; says whether there may be more. */
export async function deleteOldest(
  db: Kysely<Schema>,
  table: 'team_metrics' | 'sandbox_metrics',
  time: number,
): Promise<boolean> {
  const oldest = await db.selectFrom(table).select('at').orderBy('at').limit(1).executeTakeFirst()
  if (!oldest || oldest.at >= time) return false
  const until = Math.min(time, oldest.at + spanSeconds)
  await db.deleteFrom(table).where('at', '<', until).execute()
  return until < time
}
