import type { Kysely } from 'kysely'
import type { Range, UsageAt, UsageSample, UsageStore } from '../../domain/metrics.ts'
import { insertSamples } from './insert-samples.ts'
import { deleteOldest, inKeyOrder, stepStart } from './metric-rows.ts'
import type { SandboxMetricRow, Schema } from '../schema.ts'

export function sqlUsageStore(db: Kysely<Schema>): UsageStore {
  return {
    async record(samples) {
      if (samples.length === 0) return
      const rows = samples
        .map(toRow)
        .toSorted((a, b) => inKeyOrder([a.sandbox_id, a.at], [b.sandbox_id, b.at]))
      await insertSamples(db, rows)
    },
    async rangeOf(teamId, sandboxId) {
      const row = await ofTeam(db, teamId, [sandboxId]).executeTakeFirst()
      return row && row.first !== null && row.last !== null
        ? { start: row.first, end: row.last }
        : undefined
    },
    series: (sandboxId, range, stepSeconds) => readSeries(db, sandboxId, range, stepSeconds),
    async latest(teamId, sandboxIds) {
      const rows = await db
        .with('newest', () => ofTeam(db, teamId, sandboxIds))
        .selectFrom('newest')
        .innerJoin('sandbox_metrics', (join) =>
          join
            .onRef('sandbox_metrics.sandbox_id', '=', 'newest.id')
            .onRef('sandbox_metrics.at', '=', 'newest.last'),
        )
        .selectAll('sandbox_metrics')
        .execute()
      return rows.map((row) => ({ ...fromRow(row), sandboxId: row.sandbox_id }))
    },
    deleteBefore: (time) => deleteOldest(db, 'sandbox_metrics', time),
  }
}

/** Returns the largest value of each column per step. */
async function readSeries(
  db: Kysely<Schema>,
  sandboxId: string,
  range: Range,
  stepSeconds: number,
): Promise<UsageAt[]> {
  const step = stepStart(stepSeconds)
  const rows = await db
    .selectFrom('sandbox_metrics')
    .select(({ fn }) => [
      step.as('at'),
      fn.max('cpu_count').as('cpu_count'),
      fn.max('cpu_used_percent').as('cpu_used_percent'),
      fn.max('memory_used_bytes').as('memory_used_bytes'),
      fn.max('memory_cache_bytes').as('memory_cache_bytes'),
      fn.max('memory_total_bytes').as('memory_total_bytes'),
      fn.max('disk_used_bytes').as('disk_used_bytes'),
      fn.max('disk_total_bytes').as('disk_total_bytes'),
    ])
    .where('sandbox_id', '=', sandboxId)
    .where('at', '>=', range.start)
    .where('at', '<=', range.end)
    .groupBy(step)
    .orderBy(step)
    .execute()
  return rows.map(fromRow)
}

/**
 * Selects the sandboxes that belong to the team, with the times of their first and last sample: two index lookups each.
 */
function ofTeam(db: Kysely<Schema>, teamId: string, sandboxIds: readonly string[]) {
  return db
    .selectFrom('sandboxes')
    .select((select) => {
      const samples = select
        .selectFrom('sandbox_metrics')
        .whereRef('sandbox_metrics.sandbox_id', '=', 'sandboxes.id')
      return [
        'sandboxes.id',
        samples.select(({ fn }) => fn.min<number | null>('at').as('at')).as('first'),
        samples.select(({ fn }) => fn.max<number | null>('at').as('at')).as('last'),
      ]
    })
    .where('team_id', '=', teamId)
    .where('sandboxes.id', 'in', sandboxIds)
}

function toRow(sample: UsageSample): SandboxMetricRow {
  return {
    sandbox_id: sample.sandboxId,
    at: sample.at,
    cpu_count: sample.cpuCount,
    cpu_used_percent: sample.cpuUsedPercent,
    memory_used_bytes: sample.memoryUsedBytes,
    memory_cache_bytes: sample.memoryCacheBytes,
    memory_total_bytes: sample.memoryTotalBytes,
    disk_used_bytes: sample.diskUsedBytes,
    disk_total_bytes: sample.diskTotalBytes,
  }
}

function fromRow(row: Omit<SandboxMetricRow, 'sandbox_id'>): UsageAt {
  return {
    at: row.at,
    cpuCount: row.cpu_count,
    cpuUsedPercent: row.cpu_used_percent,
    memoryUsedBytes: row.memory_used_bytes,
    memoryCacheBytes: row.memory_cache_bytes,
    memoryTotalBytes: row.memory_total_bytes,
    diskUsedBytes: row.disk_used_bytes,
    diskTotalBytes: row.disk_total_bytes,
  }
}
