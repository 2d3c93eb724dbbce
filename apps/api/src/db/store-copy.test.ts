import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { unsavedKeys } from '../sim/store.ts'
import { copySqliteFile, openSqlite } from './sqlite.ts'
import { endMissingSandboxes } from './store-copy.ts'
import { openStores } from './stores.ts'

suite('copies of the SQLite store', () => {
  const keys = unsavedKeys()
  let folder = ''
  const at = (name: string) => join(folder, name)

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-store-copy-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  test('a copy has everything that was written before, also while transactions are open', async () => {
    const stores = await openStores(at('atoll.db'), keys)
    const written: string[] = []
    let isOver = false
    const write = async () => {
      while (!isOver) {
        const key = `key-${written.length}`
        await stores.settings.ensure(key, () => 'value')
        written.push(key)
      }
    }
    const writing = write()
    await stores.settings.ensure('before', () => 'the copy')
    await stores.copyTo?.(at('copy.db'))
    isOver = true
    await writing
    await stores.close()
    const copy = new DatabaseSync(at('copy.db'))
    const found = copy.prepare('select value from settings where name = ?').get('before')
    assert.equal(found?.['value'], 'the copy')
    assert.equal(copy.prepare('pragma integrity_check').get()?.['integrity_check'], 'ok')
    copy.close()
  })

  test('a copy never overwrites a file', async () => {
    const stores = await openStores(at('atoll.db'), keys)
    await stores.copyTo?.(at('copy.db'))
    await assert.rejects(async () => stores.copyTo?.(at('copy.db')), { code: 'EEXIST' })
    await stores.close()
  })

  test('a store that no server uses is copied', async () => {
    const stores = await openStores(at('atoll.db'), keys)
    await stores.settings.ensure('kept', () => 'yes')
    await stores.close()
    await copySqliteFile(at('atoll.db'), at('copy.db'))
    const reopened = await openStores(at('copy.db'), keys)
    assert.equal(await reopened.settings.ensure('kept', () => 'no'), 'yes')
    await reopened.close()
  })

  test('records of sandboxes that a backup lacks end with the reason, the others stay', async () => {
    const { db } = openSqlite(at('copy.db'))
    await db.schema
      .createTable('sandboxes')
      .addColumn('id', 'text')
      .addColumn('state', 'text')
      .addColumn('ended_at', 'integer')
      .addColumn('end_reason', 'text')
      .addColumn('network', 'text')
      .addColumn('holder', 'text')
      .addColumn('network_holder', 'text')
      .execute()
    await db.destroy()
    const rows = new DatabaseSync(at('copy.db'))
    const insert = rows.prepare('insert into sandboxes (id, state, network) values (?, ?, ?)')
    for (const [id, state] of [
      ['runs', 'running'],
      ['pauses', 'pausing'],
      ['kept', 'paused'],
      ['resumed', 'running'],
      ['over', 'ended'],
    ] as const) {
      insert.run(id, state, '{}')
    }
    rows.close()
    const present = new Set(['kept', 'resumed'])
    const end = { now: new Date(1_000), reason: 'was running' }
    assert.equal(endMissingSandboxes(at('copy.db'), present, end), 2)
    const copy = new DatabaseSync(at('copy.db'))
    const found = copy.prepare('select id, state, ended_at, end_reason, network from sandboxes')
    assert.deepEqual(
      found.all().map((row) => Object.values(row)),
      [
        ['runs', 'ended', 1_000, 'was running', null],
        ['pauses', 'ended', 1_000, 'was running', null],
        ['kept', 'paused', null, null, '{}'],
        ['resumed', 'running', null, null, '{}'],
        ['over', 'ended', null, null, '{}'],
      ],
    )
    copy.close()
    assert.deepEqual(await readdir(folder), ['copy.db'], 'a log file is left beside the copy')
  })
})
