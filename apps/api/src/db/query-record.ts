import type { LogEvent } from 'kysely'

/** A finished statement, for the metrics. */
export interface QueryRecord {
  readonly kind: 'select' | 'insert' | 'update' | 'delete' | 'other'
  readonly hasFailed: boolean
  readonly durationMs: number
}

export type OnQuery = (record: QueryRecord) => void

export function reportTo(onQuery: OnQuery): (event: LogEvent) => void {
  return ({ level, query, queryDurationMillis }) =>
    onQuery({
      kind: kindOf(query.sql),
      hasFailed: level === 'error',
      durationMs: queryDurationMillis,
    })
}

function kindOf(sql: string): QueryRecord['kind'] {
  const word = sql.slice(0, 6).toLowerCase()
  return word === 'select' || word === 'insert' || word === 'update' || word === 'delete'
    ? word
    : 'other'
}
