import type { ExpressionBuilder, Kysely } from 'kysely'
import { sql } from 'kysely'
import { sampleSeconds } from '../../domain/metrics.ts'
import type { TeamMetricStore } from '../../domain/metrics.ts'
import { batches } from '../batches.ts'
import { deleteOldest, inKeyOrder, stepStart } from './metric-rows.ts'
import type { Schema } from '../schema.ts'

type Db = Kysely<Schema>

export function sqlTeamMetricStore(db: Db): TeamMetricStore {
  return { ...sandboxCounts(db), ...sampleWriter(db), ...sampleReader(db) }
}

/** Counts sandboxes in their records. */
function sandboxCounts(db: Db): Pick<TeamMetricStore, 'countRunning' | 'countStarts'> {
  return {
    async countRunning() {
      const rows = await db
        .selectFrom('sandboxes')
        .select(({ fn }) => ['team_id', fn.countAll<number>().as('total')])
        // Sandboxes in `pausing` or `killing` still run, except those killed while paused.
        .where('state', 'in', ['running', 'snapshotting', 'pausing', 'killing'])
        .where('started_at', 'is not', null)
        .where('kept', 'is', null)
        .groupBy('team_id')
        .execute()
      return new Map(rows.map((row) => [row.team_id, row.total]))
    },
    async countStarts(since) {
      const window = sql.lit(sampleSeconds * 1000)
      const begin = sql<number>`started_at - started_at % ${window}`
      const rows = await db
        .selectFrom('sandboxes')
        .select(({ fn }) => ['team_id', begin.as('begin'), fn.countAll<number>().as('total')])
        .where('started_at', '>=', since * 1000)
        .groupBy(['team_id', begin])
        .execute()
      return rows.map((row) => ({
        teamId: row.team_id,
        at: row.begin / 1000,
        started: row.total,
      }))
    },
  }
}

/** Records and deletes samples. */
function sampleWriter(db: Db): Pick<TeamMetricStore, 'record' | 'deleteBefore'> {
  return {
    async record(samples) {
      if (samples.length === 0) return
      const rows = samples
        .map(({ teamId, ...sample }) => ({ team_id: teamId, ...sample }))
        .toSorted((a, b) => inKeyOrder([a.team_id, a.at], [b.team_id, b.at]))
      await db.transaction().execute(async (transaction) => {
        for (const batch of batches(rows)) {
          await transaction
            .insertInto('team_metrics')
            .values(batch)
            .onConflict((conflict) =>
              conflict.columns(['team_id', 'at']).doUpdateSet((set) => ({
                concurrent: larger(set, 'concurrent'),
                started: larger(set, 'started'),
              })),
            )
            .execute()
        }
      })
    },
    deleteBefore: (time) => deleteOldest(db, 'team_metrics', time),
  }
}

/** Reads samples. */
function sampleReader(
  db: Db,
): Pick<TeamMetricStore, 'lastSampleAt' | 'listActive' | 'series' | 'peak'> {
  return {
    async lastSampleAt() {
      const row = await db
        .selectFrom('team_metrics')
        .select('at')
        .orderBy('at', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row?.at
    },
    async listActive(at) {
      const rows = await db
        .selectFrom('team_metrics')
        .select('team_id')
        .where('at', '=', at)
        .where('concurrent', '>', 0)
        .execute()
      return rows.map((row) => row.team_id)
    },
    async series(teamId, range, stepSeconds) {
      const step = stepStart(stepSeconds)
      return db
        .selectFrom('team_metrics')
        .select(({ fn }) => [
          step.as('at'),
          fn.max('concurrent').as('concurrent'),
          fn.sum<number>('started').as('started'),
        ])
        .where('team_id', '=', teamId)
        .where('at', '>=', range.start)
        .where('at', '<=', range.end)
        .groupBy(step)
        .orderBy(step)
        .execute()
    },
    async peak(teamId, range, metric) {
      return db
        .selectFrom('team_metrics')
        .select(({ ref }) => ['at', ref(metric).as('value')])
        .where('team_id', '=', teamId)
        .where('at', '>=', range.start)
        .where('at', '<=', range.end)
        .orderBy(metric, 'desc')
        .orderBy('at')
        .limit(1)
        .executeTakeFirst()
    },
  }
}

type Conflict = ExpressionBuilder<
  Schema & { excluded: Schema['team_metrics'] },
  'team_metrics' | 'excluded'
>

function larger({ case: when, ref }: Conflict, column: 'concurrent' | 'started') {
  const [kept, given] = [ref(`team_metrics.${column}`), ref(`excluded.${column}`)]
  return when().when(given, '>', kept).then(given).else(kept).end()
}
