import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { configuredLimits, loadApiConfig, storeLocation } from './config.ts'

test('nothing needs to be configured', () => {
  assert.deepEqual(loadApiConfig({ HOME: '/root' }), {
    ATOLL_DATA_DIR: '/var/lib/atoll',
    ATOLL_BASE_CPU_COUNT: 2,
    ATOLL_BASE_MEMORY_MB: 1024,
    ATOLL_BASE_DISK_SIZE_MB: 4096,
    ATOLL_MAX_SANDBOX_SECONDS: 86_400,
    ATOLL_TEAM_CONCURRENT_SANDBOXES: 100,
    ATOLL_TEAM_CONCURRENT_BUILDS: 20,
    ATOLL_TEAM_KEPT_DISK_MB: 102_400,
    ATOLL_UNUSED_BUILD_HOURS: 168,
    ATOLL_MAX_BUILD_FILES_MB: 2048,
    ATOLL_INSTALL_TEMPLATES: 'on-demand',
    ATOLL_LOG_LEVEL: 'info',
  })
})

test('all mistakes are reported at once', () => {
  assert.throws(
    () => loadApiConfig({ ATOLL_BASE_MEMORY_MB: '64', ATOLL_BASE_CPU_COUNT: 'many' }),
    /ATOLL_BASE_CPU_COUNT[\s\S]*ATOLL_BASE_MEMORY_MB|ATOLL_BASE_MEMORY_MB[\s\S]*ATOLL_BASE_CPU_COUNT/,
  )
})

test('the URL of the database may name several servers, of which one must take writes', () => {
  const load = (ATOLL_DATABASE_URL: string) => storeLocation(loadApiConfig({ ATOLL_DATABASE_URL }))
  const url = 'postgres://atoll:secret@db1:5432,db2:5432/atoll'
  assert.equal(load(url), url)
  assert.equal(
    load(`${url}?target_session_attrs=read-write`),
    `${url}?target_session_attrs=read-write`,
  )
  assert.throws(() => load(`${url}?target_session_attrs=any`), /must be read-write or primary/)
  assert.throws(() => load('postgres://atoll:secret@db1:5432,/atoll'), /separated by commas/)
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
    /cannot read the file .*absent: ENOENT[\s\S]*ATOLL_DATABASE_URL_FILE/,
  )
  await rm(folder, { recursive: true })
})

for (const url of [
  'mysql://me:secret@host/db',
  'me:secret@host/db',
  'postgres://me:secret@ho st/db',
]) {
  test(`a URL such as ${url} is refused without quoting it`, () => {
    assert.throws(
      () => loadApiConfig({ ATOLL_DATABASE_URL: url }),
      ({ message }: Error) =>
        /postgres:\/\/user:password@host/.test(message) && !message.includes('secret'),
    )
  })
}

test('the admin token comes from a setting or from a file, not from both', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-config-'))
  const file = join(folder, 'token')
  await writeFile(file, ' operators-only-token\n')
  const { ATOLL_ADMIN_TOKEN } = loadApiConfig({ ATOLL_ADMIN_TOKEN_FILE: file })
  assert.equal(ATOLL_ADMIN_TOKEN, 'operators-only-token')
  const both = { ATOLL_ADMIN_TOKEN_FILE: file, ATOLL_ADMIN_TOKEN: 'operators-only-token' }
  assert.throws(() => loadApiConfig(both), /not both/)
  assert.throws(() => loadApiConfig({ ATOLL_ADMIN_TOKEN: 'short' }), /at least 16/)
  await rm(folder, { recursive: true })
})

test('rate limits are read, and refused when they are none', () => {
  const { ATOLL_RATE_LIMITS } = loadApiConfig({
    ATOLL_RATE_LIMITS: 'sandbox.create=5/1, *=20000/30',
  })
  assert.deepEqual(
    ATOLL_RATE_LIMITS,
    new Map([
      ['sandbox.create', { requests: 5, seconds: 1 }],
      ['*', { requests: 20_000, seconds: 30 }],
    ]),
  )
  for (const bad of ['sandbox.create', 'nothing.here=1/1', '*=0/1', '*=1/0', '*=1/-1', '*=x/1']) {
    assert.throws(() => loadApiConfig({ ATOLL_RATE_LIMITS: bad }), /operation=requests/, bad)
  }
})

test('the limits of a team leave room for base, however large that is', () => {
  const { maxMemoryMb, maxCpuCount, maxDiskSizeMb } = configuredLimits(
    loadApiConfig({ ATOLL_BASE_MEMORY_MB: '16384', ATOLL_TEAM_MAX_DISK_SIZE_MB: '5000' }),
  )
  assert.deepEqual([maxMemoryMb, maxCpuCount, maxDiskSizeMb], [16_384, 8, 5000])
})
