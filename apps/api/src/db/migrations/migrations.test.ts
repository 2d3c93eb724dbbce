import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { makeStore, unsavedKeys } from '../../sim/store.ts'
import { migrate } from './migrate.ts'
import { migrations } from './migrations.ts'
import { openDatabase, openStores } from '../stores.ts'

const template = 'abcdefghij0123456789'
const build = '11111111-1111-4111-8111-111111111111'

/** Rows of the first schema version, as raw SQL: the current schema types no longer match. */
const firstRows = [
  sql`insert into teams values ('team-1', 'default', 1000)`,
  sql`insert into teams values ('team-2', 'default', 2000)`,
  sql`insert into users values ('user-1', null, 'team-1', 1000)`,
  sql`insert into access_tokens (id, user_id, hash, mask, created_at)
      values ('token-1', 'user-1', 'hash-1', '{}', 1000)`,
  sql`insert into templates (id, build_id, alias, public, node_template_id, cpu_count, memory_mb,
        disk_size_mb, created_at, updated_at)
      values (${template}, ${build}, 'base', 1, 'base', 2, 512, 1024, 1000, 2000)`,
  ...[5000, 4000, null].map(
    (startedAt) =>
      sql`insert into sandboxes (id, team_id, template_id, build_id, state, cpu_count, memory_mb,
            disk_size_mb, has_metadata, secure, created_at, started_at, end_reason)
          values (${`i${startedAt}`}, 'team-1', ${template}, ${build}, 'ended', 2, 512, 1024, 0, 1,
            3000, ${startedAt}, ${startedAt === 5000 ? 'was killed' : 'node lost'})`,
  ),
]

test('a store of the first version keeps its users, its template and its sandboxes', async () => {
  await using place = await makeStore('empty')
  const old = openDatabase(place.location)
  await old.exclusively((db) => migrate(db, migrations.slice(0, 1)))
  for (const statement of firstRows) await statement.execute(old.db)
  await old.db.destroy()

  const stores = await openStores(place.location, unsavedKeys())
  try {
    const { templates, teams, users, sandboxes } = stores
    const ended = [await sandboxes.find('i5000'), await sandboxes.find('i4000')]
    assert.deepEqual(
      ended.map((sandbox) => sandbox?.isKillRequested),
      [true, false],
    )
    assert.deepEqual(await users.findByTokenHash('hash-1'), {
      id: 'user-1',
      email: null,
      defaultTeamId: 'team-1',
    })
    assert.equal(await teams.isMember('user-1', 'team-1'), true)
    const slugs = (await teams.list()).map(({ slug }) => slug)
    assert.deepEqual(slugs, ['default', 'default-team-2'])
    const base = await templates.locate({ namespace: undefined, name: 'base' }, 'any team')
    assert.deepEqual(await templates.findBuild(base?.id ?? ''), {
      id: template,
      buildId: build,
      alias: 'base',
      public: true,
      nodeTemplateId: 'base',
      nodeId: undefined,
      isDurable: false,
      snapshotId: undefined,
      snapshotOf: undefined,
      envdVersion: undefined,
      resources: { cpuCount: 2, memoryMb: 512, diskSizeMb: 1024 },
    })
    const [listed] = await templates.list('team-1', { order: 'asc' })
    assert.deepEqual(
      [listed?.spawnCount, listed?.lastSpawnedAt?.getTime(), listed?.updatedAt.getTime()],
      [2, 5000, 2000],
    )
  } finally {
    await stores.close()
  }
})
