import assert from 'node:assert/strict'
import { once } from 'node:events'
import { access, mkdtemp, mkdtempDisposable, readFile, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { after, before, test } from 'node:test'
import { createPlatformClient } from '@atoll/client/platform'
import { run, tryRun } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { startPostgres } from '../../../tools/postgres.ts'
import type { PostgresServer } from '../../../tools/postgres.ts'
import { cellOwners } from '../host-state.ts'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { shell } from '../shell.ts'

/** A whole installation whose records are in PostgreSQL. */

const timeoutMs = 600_000
const password = 'verysecretpassword'
let server: PostgresServer
let databaseUrl: string
let installation: Installation

before(async () => {
  server = await startPostgres()
  const url = new URL(`${server.url}/postgres`)
  url.password = password // PostgreSQL trusts connections over loopback, so any password works
  databaseUrl = url.href
  installation = await install({
    ATOLL_RUNTIME: 'runc',
    ATOLL_BASE_MEMORY_MB: '256',
    ATOLL_DATABASE_URL: databaseUrl,
  })
})
after(async () => {
  await installation?.[Symbol.asyncDispose]()
  await server?.close()
})

const createSandbox = () =>
  Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000 })

async function listSandboxIds(): Promise<string[]> {
  const client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
  const sandboxes = await Array.fromAsync(client.listSandboxes())
  return sandboxes.map(({ sandboxID }) => sandboxID).toSorted()
}

async function listCellOwners(): Promise<string[]> {
  const cells = await cellOwners(installation.dataDir)
  return cells.map(({ owner, cellId }) => owner ?? cellId).toSorted()
}

test('the SDK works, and no embedded store is created', async () => {
  const sandbox = await createSandbox()
  assert.equal((await shell(sandbox, 'echo hello')).stdout, 'hello\n')
  assert.deepEqual(await listSandboxIds(), [sandbox.sandboxId])
  await assert.rejects(access(join(installation.dataDir, 'atoll.db')), /ENOENT/)
  await sandbox.kill()
  assert.deepEqual(await listSandboxIds(), [])
})

test('after a crash in the middle of creates, records and node agree within seconds', async () => {
  const sandbox = await createSandbox()
  const creates = Array.from({ length: 4 }, () => createSandbox().catch(() => undefined))
  await waitFor('creates under way', async () => (await listCellOwners()).length > 1)
  await installation.crash()
  await Promise.all(creates)
  await installation.start()
  await waitFor(
    'records and node to agree',
    async () => (await listSandboxIds()).join() === (await listCellOwners()).join(),
  )
  assert.equal((await shell(sandbox, 'hostname')).stdout.trim(), sandbox.sandboxId)
})

test('a second server with its own node cannot use the same database', async () => {
  const idsBefore = await listSandboxIds()
  const dataDir = await mkdtemp('/var/tmp/atoll-test-')
  const env = {
    ...installation.env,
    ATOLL_DATA_DIR: dataDir,
    ATOLL_LISTEN: `127.0.0.1:${await freePort()}`,
    ATOLL_SUBNET: '10.212.252.0/22',
  }
  const withoutKeys = await tryRun(atoll, ['up'], { env })
  assert.notEqual(withoutKeys.code, 0)
  assert.match(withoutKeys.stdout + withoutKeys.stderr, /need the same key file/)
  const ATOLL_ENCRYPTION_KEY_FILE = join(installation.dataDir, 'encryption-keys')
  const { code, stdout, stderr } = await tryRun(atoll, ['up'], {
    env: { ...env, ATOLL_ENCRYPTION_KEY_FILE },
  })
  assert.notEqual(code, 0)
  assert.match(stdout + stderr, /give each server its own database/)
  await tryRun(atoll, ['down'], { env: { ...installation.env, ATOLL_DATA_DIR: dataDir } })
  await rm(dataDir, { recursive: true, force: true })
  assert.deepEqual(await listSandboxIds(), idsBefore)
})

test('a server refuses to start while the database is away, and starts with its sandboxes when it is back', async () => {
  const sandbox = await createSandbox()
  await installation.interrupt()
  const port = await freePort()
  const away = new URL(databaseUrl)
  away.port = String(port)
  const ATOLL_DATABASE_URL = away.href
  const refused = await tryRun(atoll, ['up'], { env: { ...installation.env, ATOLL_DATABASE_URL } })
  assert.notEqual(refused.code, 0)
  assert.match(refused.stdout + refused.stderr, /PostgreSQL at .* cannot be used: .*ECONNREFUSED/)

  const relay = createServer((client) => {
    const { hostname, port: target } = new URL(databaseUrl)
    pipeline(client, connect(Number(target), hostname), client, () => {})
  }).listen(port, '127.0.0.1')
  await once(relay, 'listening')
  await installation.start({ ATOLL_DATABASE_URL })
  assert.equal((await shell(sandbox, 'hostname')).stdout.trim(), sandbox.sandboxId)
  await sandbox.kill()
  await installation.interrupt()
  relay.close()
  await installation.start({ ATOLL_DATABASE_URL: databaseUrl })
})

test('a backup with a dump of the database brings a paused sandbox to another installation', async () => {
  const sandbox = await createSandbox()
  await shell(sandbox, 'echo kept > /home/user/kept')
  const paused = await fetch(`${installation.url}/sandboxes/${sandbox.sandboxId}/pause`, {
    method: 'POST',
    headers: { 'X-API-Key': installation.apiKey, 'Content-Type': 'application/json' },
    body: JSON.stringify({ memory: false }),
  })
  assert.equal(paused.status, 204, await paused.text())
  await using folder = await mkdtempDisposable('/var/tmp/atoll-test-backup-')
  const backup = join(folder.path, 'backup')
  const printed = await run(atoll, ['backup', backup], { env: installation.env, timeoutMs })
  assert.match(printed, /The database is NOT in this backup/)
  const restoredUrl = new URL(databaseUrl)
  restoredUrl.pathname = '/restored'
  const dump = join(folder.path, 'dump.sql')
  await run('pg_dump', ['--file', dump, databaseUrl], { timeoutMs })
  await run('psql', [databaseUrl, '--command', 'CREATE DATABASE restored'])
  await run('psql', [restoredUrl.href, '--quiet', '--file', dump], { timeoutMs })

  // Only one of the two may have the sandboxes.
  await installation.interrupt()
  const dataDir = join(folder.path, 'data')
  const place = {
    ATOLL_DATA_DIR: dataDir,
    ATOLL_LAYERS_DIR: join(dataDir, 'layers'),
    ATOLL_DATABASE_URL: restoredUrl.href,
  }
  await run(atoll, ['restore', backup], { env: { ...process.env, ...place }, timeoutMs })
  {
    await using restored = await install({ ATOLL_RUNTIME: 'runc', ...place })
    const there = await Sandbox.connect(sandbox.sandboxId, restored.connection)
    assert.equal((await shell(there, 'cat /home/user/kept')).stdout, 'kept\n')
  }
  await installation.start()
  await sandbox.kill()
})

test('the password of the database is in no log and in no output', async () => {
  const log = await readFile(join(installation.dataDir, 'logs/server.log'), 'utf8')
  assert.ok(log.length > 0 && !log.includes(password))
  assert.ok(!installation.output().includes(password))
})
