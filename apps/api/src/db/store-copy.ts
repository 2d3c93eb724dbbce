import { DatabaseSync } from 'node:sqlite'

/**
 * Ends the records of sandboxes that a copy of the store knows and a backup does not have, with a reason that users
 * see. Without it the first reconciliation after a restore would end them as lost.
 */
export function endMissingSandboxes(
  path: string,
  present: ReadonlySet<string>,
  { now, reason }: { readonly now: Date; readonly reason: string },
): number {
  const database = new DatabaseSync(path)
  try {
    // A copy is one file: without this, SQLite would leave a log file beside it.
    database.exec('PRAGMA journal_mode = DELETE')
    database.exec('BEGIN IMMEDIATE')
    const rows = database.prepare(`select id from sandboxes where state <> 'ended'`).all()
    const missing = rows.flatMap(({ id }) => (typeof id === 'string' && !present.has(id) ? id : []))
    const end = database.prepare(
      `update sandboxes set state = 'ended', ended_at = ?, end_reason = coalesce(end_reason, ?),
       network = null, holder = null, network_holder = null where id = ?`,
    )
    for (const id of missing) end.run(now.getTime(), reason, id)
    database.exec('COMMIT')
    return missing.length
  } finally {
    database.close()
  }
}
