import type { Kysely } from 'kysely'
import type { BuildLogStore } from '../domain/build-log.ts'
import type { LogLevel } from '../domain/log.ts'
import { batches } from './batches.ts'
import type { Schema } from './schema.ts'

/** The place of a level in this list is its number in the rows. */
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
