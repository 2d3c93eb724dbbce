import { sql } from 'kysely'
import type { Kysely } from 'kysely'
import type { RateCount, RateStore, SharedWindow } from '../../domain/teams/rate.ts'
import { batches } from '../batches.ts'
import type { RateWindowRow, Schema } from '../schema.ts'

/** Clocks of machines differ by less. A window that ends later is from before a change of a clock or of a limit. */
const clockToleranceMs = 10_000

export function sqlRateStore(db: Kysely<Schema>): RateStore {
  return {
    async add(counts, now) {
      const windows: SharedWindow[] = []
      // Sorted, so that apis that add to the same windows concurrently cannot deadlock.
      for (const batch of batches(counts.map(toRow).toSorted(inKeyOrder))) {
        for (const row of await addBatch(db, batch, now)) windows.push(fromRow(row))
      }
      return windows
    },
    async deleteEndedBefore(time) {
      await db.deleteFrom('rate_windows').where('ends_at', '<', time.getTime()).execute()
    },
  }
}

function addBatch(
  db: Kysely<Schema>,
  rows: readonly RateWindowRow[],
  now: Date,
): Promise<RateWindowRow[]> {
  const nowMs = sql`cast(${now.getTime()} as bigint)`
  const isOpen = sql<boolean>`rate_windows.ends_at > ${nowMs} and rate_windows.ends_at
    <= ${nowMs} + excluded.seconds * 1000 + ${sql.lit(clockToleranceMs)}`
  return db
    .insertInto('rate_windows')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['team_id', 'operation']).doUpdateSet({
        requests: sql<number>`case when ${isOpen} then rate_windows.requests else 0 end + excluded.requests`,
        seconds: sql<number>`excluded.seconds`,
        ends_at: sql<number>`case when ${isOpen} then rate_windows.ends_at else excluded.ends_at end`,
      }),
    )
    .returningAll()
    .execute()
}

function toRow({ teamId, operationId, requests, seconds, endsAt }: RateCount): RateWindowRow {
  const key = { team_id: teamId, operation: operationId }
  return { ...key, requests, seconds, ends_at: endsAt.getTime() }
}

function fromRow({ team_id, operation, requests, ends_at }: RateWindowRow): SharedWindow {
  return { teamId: team_id, operationId: operation, requests, endsAt: new Date(ends_at) }
}

function inKeyOrder(a: RateWindowRow, b: RateWindowRow): number {
  if (a.team_id !== b.team_id) return a.team_id < b.team_id ? -1 : 1
  return a.operation < b.operation ? -1 : 1
}
