import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadApiConfig, storeLocation } from './config.ts'

test('nothing needs to be configured', () => {
  assert.deepEqual(loadApiConfig({ HOME: '/root' }), {
    ATOLL_DATA_DIR: '/var/lib/atoll',
    ATOLL_BASE_CPU_COUNT: 2,
    ATOLL_BASE_MEMORY_MB: 1024,
    ATOLL_BASE_DISK_SIZE_MB: 4096,
    ATOLL_MAX_SANDBOX_SECONDS: 86_400,
    ATOLL_LOG_LEVEL: 'info',
  })
})

test('all mistakes are reported at once', () => {
  assert.throws(
    () => loadApiConfig({ ATOLL_BASE_MEMORY_MB: '64', ATOLL_BASE_CPU_COUNT: 'many' }),
    /ATOLL_BASE_CPU_COUNT[\s\S]*ATOLL_BASE_MEMORY_MB|ATOLL_BASE_MEMORY_MB[\s\S]*ATOLL_BASE_CPU_COUNT/,
  )
})

test('the URL of the database may be in a file, so that no list of processes shows it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-config-'))
  const url = 'postgres://atoll:secret@db.internal:5432/atoll'
  const ATOLL_DATABASE_URL_FILE = join(folder, 'url')
  await writeFile(ATOLL_DATABASE_URL_FILE, `${url}\n`)
  assert.equal(storeLocation(loadApiConfig({ ATOLL_DATABASE_URL_FILE })), url)
  assert.throws(
    () => loadApiConfig({ ATOLL_DATABASE_URL_FILE, ATOLL_DATABASE_URL: url }),
    /ATOLL_DATABASE_URL or ATOLL_DATABASE_URL_FILE, not both/,
  )
  assert.throws(
    () => loadApiConfig({ ATOLL_DATABASE_URL_FILE: join(folder, 'absent') }),
    /absent cannot be read: ENOENT[\s\S]*ATOLL_DATABASE_URL_FILE/,
  )
  await rm(folder, { recursive: true })
})

for (const url of [
  'mysql://me:secret@host/db',
  'me:secret@host/db',
  'postgres://me:secret@ho st/db',
]) {
  test(`a URL such as ${url} is refused without a word about what is in it`, () => {
    assert.throws(
      () => loadApiConfig({ ATOLL_DATABASE_URL: url }),
      ({ message }: Error) =>
        /postgres:\/\/user:password@host/.test(message) && !message.includes('secret'),
    )
  })
}
