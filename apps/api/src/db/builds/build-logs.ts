import type { Kysely } from 'kysely'
import type { BuildLogStore } from '../../domain/builds/build-log.ts'
import type { LogLevel } from '../../domain/log.ts'
import { batches } from '../batches.ts'
import type { Schema } from '../schema.ts'

/** Rows store the index of a level in this list. */
const levels = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[]

export function sqlBuildLogStore(db: Kysely<Schema>): BuildLogStore {
  return {
    async append(build_id, first, entries) {
      const rows = entries.map(({ at, level, step, message }, index) => ({
        build_id,
        position: first + index,
        at: at.getTime(),
        level: levels.indexOf(level),
        step,
        message,
      }))
      for (const batch of batches(rows)) {
        await db.insertInto('build_logs').values(batch).execute()
      }
    },
    async forget(endedBefore, limit) {
      const builds = await db
        .selectFrom('template_builds')
        .select('id')
        .where('finished_at', '<', endedBefore.getTime())
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom('build_logs')
              .select('build_id')
              .whereRef('build_logs.build_id', '=', 'template_builds.id'),
          ),
        )
        .limit(limit)
        .execute()
      for (const ids of batches(builds.map(({ id }) => id))) {
        await db.deleteFrom('build_logs').where('build_id', 'in', ids).execute()
      }
      return builds.length
    },
    async read(buildId, { minLevel, step, from, before, newestFirst, offset, limit }) {
      let query = db
        .selectFrom('build_logs')
        .selectAll()
        .where('build_id', '=', buildId)
        .orderBy('position', newestFirst ? 'desc' : 'asc')
        .limit(limit)
      if (offset) query = query.offset(offset)
      if (minLevel) query = query.where('level', '>=', levels.indexOf(minLevel))
      if (step !== undefined) query = query.where('step', '=', step)
      if (from) query = query.where('at', '>=', from.getTime())
      if (before) query = query.where('at', '<', before.getTime())
      const rows = await query.execute()
      return rows.map((row) => ({
        at: new Date(row.at),
        level: levels[row.level] ?? 'info',
        step: row.step,
        message: row.message,
      }))
    },
  }
}
