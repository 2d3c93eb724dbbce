import { PostgresAdapter, sql } from 'kysely'
import type { Kysely } from 'kysely'
import { batches } from '../batches.ts'
import type { SandboxMetricRow, Schema } from '../schema.ts'

/** Inserts samples that are sorted by key. A sample that exists is kept. */
export async function insertSamples(
  db: Kysely<Schema>,
  rows: readonly SandboxMetricRow[],
): Promise<void> {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter
  // No transaction: a caller that sees a failure records the same samples again.
  for (const batch of batches(rows)) {
    if (isPostgres) await insertAsJson(db, batch)
    else
      await db
        .insertInto('sandbox_metrics')
        .values(batch)
        .onConflict((conflict) => conflict.columns(['sandbox_id', 'at']).doNothing())
        .execute()
  }
}

/**
 * Sends a batch as one value: a large fleet writes thousands of samples a second, and a parameter for each of their numbers
 * takes the api and the database several times as long.
 */
async function insertAsJson(db: Kysely<Schema>, batch: readonly SandboxMetricRow[]): Promise<void> {
  await sql`insert into sandbox_metrics
    (sandbox_id, "at", cpu_count, cpu_used_percent, memory_used_bytes, memory_cache_bytes,
      memory_total_bytes, disk_used_bytes, disk_total_bytes)
    select sandbox_id, "at", cpu_count, cpu_used_percent, memory_used_bytes, memory_cache_bytes,
      memory_total_bytes, disk_used_bytes, disk_total_bytes
    from json_to_recordset(cast(${JSON.stringify(batch)} as json)) as sample
      (sandbox_id text, "at" bigint, cpu_count integer, cpu_used_percent double precision,
        memory_used_bytes bigint, memory_cache_bytes bigint, memory_total_bytes bigint,
        disk_used_bytes bigint, disk_total_bytes bigint)
    on conflict (sandbox_id, "at") do nothing`.execute(db)
}
