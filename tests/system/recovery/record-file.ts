/** Reads the store of an installation whose server is down. */
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface SandboxRecord {
  readonly id: string
  readonly state: string
}

export interface RecordFile {
  readonly records: readonly SandboxRecord[]
  /** Descriptions of records in a state that must never occur. */
  readonly damage: readonly string[]
}

/** Reads a copy: opening the file itself would already repair it. */
export async function readRecordFile(dataDir: string, metadataPairs: number): Promise<RecordFile> {
  const folder = await mkdtemp('/var/tmp/atoll-records-')
  try {
    const files = (await readdir(dataDir)).filter((name) => name.startsWith('atoll.db'))
    for (const name of files) await copyFile(join(dataDir, name), join(folder, name))
    using database = new DatabaseSync(join(folder, 'atoll.db'))
    return {
      records: database.prepare('select id, state from sandboxes').all().map(toRecord),
      damage: [
        ...pragma(database, 'integrity_check').filter((line) => line !== '["ok"]'),
        ...pragma(database, 'foreign_key_check'),
        ...invalidStates.flatMap(({ what, where }) =>
          database
            .prepare(`select id from sandboxes where ${where}`)
            .all()
            .map(({ id }) => `${String(id)}: ${what}`),
        ),
        ...findWrongMetadata(database, metadataPairs),
        ...findWrongCounts(database),
      ],
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

const invalidStates = [
  {
    what: 'being created, with a start or end time',
    where: `state = 'creating' and coalesce(started_at, end_at, ended_at) is not null`,
  },
  {
    what: 'running without a start time, an end time or a version of envd',
    where: `state = 'running' and (started_at is null or end_at is null or envd_version is null)`,
  },
  {
    what: 'running, and ended',
    where: `state = 'running' and (ended_at is not null or end_reason is not null)`,
  },
  {
    what: 'being killed without a reason',
    where: `state = 'killing' and (end_reason is null or ended_at is not null)`,
  },
  {
    what: 'ended without a time or a reason',
    where: `state = 'ended' and (ended_at is null or end_reason is null)`,
  },
]

function findWrongMetadata(database: DatabaseSync, pairs: number): string[] {
  const rows = database.prepare(`
    select id, count(key) as pairs from sandboxes left join sandbox_metadata on sandbox_id = id
    group by id having count(key) <> ${pairs}
  `)
  return rows.all().map((row) => `${String(row['id'])}: ${String(row['pairs'])} pairs of metadata`)
}

/** Finds templates with a wrong spawn count: a start and its count are one transaction. */
function findWrongCounts(database: DatabaseSync): string[] {
  const rows = database.prepare(`
    select id, spawn_count, (
      select count(*) from sandboxes where template_id = templates.id and started_at is not null
    ) as started from templates
  `)
  return rows
    .all()
    .filter((row) => row['spawn_count'] !== row['started'])
    .map((row) => `template with ${String(row['spawn_count'])} of ${String(row['started'])} starts`)
}

function pragma(database: DatabaseSync, name: string): string[] {
  const rows = database.prepare(`pragma ${name}`).all()
  return rows.map((row) => JSON.stringify(Object.values(row)))
}

function toRecord(row: Record<string, unknown>): SandboxRecord {
  return { id: String(row['id']), state: String(row['state']) }
}
