/**
 * The platform API on a store full of records, and the same records in the hands of the database's own program. No
 * node is there: a hundred thousand sandboxes run nowhere, and records stay as they are while their node is away.
 */
import { once } from 'node:events'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { startApi } from '@atoll/api'
import type { FirstCredentials } from '@atoll/api'
import { loadApiConfig } from '@atoll/api/config'
import { simulateNode } from '@atoll/api/sim'
import { silentLogger } from '@atoll/kit/log'
import { Code } from '@connectrpc/connect'
import { startPostgres } from '../../tools/postgres.ts'
import { openPsql, openSqlite3 } from './database-shell.ts'
import type { DatabaseShell } from './database-shell.ts'
import { fillStatements } from './record-statements.ts'

export interface RecordStore extends AsyncDisposable {
  readonly database: 'SQLite' | 'PostgreSQL'
  readonly program: 'sqlite3' | 'psql'
  readonly teamId: string
  readonly shell: DatabaseShell
  /** A request of the team; what is not answered with 200 is a failure. */
  get(path: string): Promise<ApiReply>
}

export interface ApiReply {
  readonly headers: Headers
  readonly text: string
}

export async function fillSqlite(): Promise<RecordStore> {
  await using opened = new AsyncDisposableStack()
  const folder = await temporaryFolder(opened)
  const file = join(folder, 'atoll.db')
  const env = { ATOLL_DATA_DIR: folder }
  const credentials = await fill(env, () => openSqlite3(file))
  // A running server has the file for itself.
  const copy = join(folder, 'copy.db')
  await copyFile(file, copy)
  const shell = opened.use(await openSqlite3(copy))
  const get = await serve(env, credentials.apiKey, opened)
  return {
    ...ownResources(opened),
    database: 'SQLite',
    program: 'sqlite3',
    ...credentials,
    shell,
    get,
  }
}

export async function fillPostgres(): Promise<RecordStore> {
  await using opened = new AsyncDisposableStack()
  const folder = await temporaryFolder(opened)
  const server = await startPostgres()
  opened.defer(() => server.close())
  const url = `${server.url}/postgres`
  const env = { ATOLL_DATA_DIR: folder, ATOLL_DATABASE_URL: url }
  const credentials = await fill(env, () => openPsql(url))
  const shell = opened.use(await openPsql(url))
  // As the server would do by itself in the course of time.
  await shell.query('vacuum analyze;')
  const get = await serve(env, credentials.apiKey, opened)
  return {
    ...ownResources(opened),
    database: 'PostgreSQL',
    program: 'psql',
    ...credentials,
    shell,
    get,
  }
}

type Env = Record<string, string>

async function temporaryFolder(opened: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp('/var/tmp/atoll-bench-')
  opened.defer(() => rm(folder, { recursive: true }))
  return folder
}

function ownResources(opened: AsyncDisposableStack): AsyncDisposable {
  const owned = opened.move()
  return { [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** One sandbox is made by the API itself and copied, so that records are as it writes them. */
async function fill(env: Env, openShell: () => Promise<DatabaseShell>): Promise<FirstCredentials> {
  let credentials: FirstCredentials | undefined
  {
    await using opened = new AsyncDisposableStack()
    const api = await startApi(loadApiConfig(env), {
      node: simulateNode().transport,
      log: silentLogger,
      saveCredentials: async (made) => void (credentials = made),
    })
    opened.defer(() => api.close())
    if (!credentials) throw new Error('the store was not new')
    const call = await listen(api.handler, credentials.apiKey, opened)
    await call('/v2/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ templateID: 'base', timeout: 86_400, metadata: { user: 'somebody' } }),
    })
  }
  await using shell = await openShell()
  await shell.query(fillStatements)
  return credentials
}

async function serve(env: Env, apiKey: string, opened: AsyncDisposableStack) {
  const node = simulateNode()
  node.failAll(Code.Unavailable)
  const api = await startApi(loadApiConfig(env), { node: node.transport, log: silentLogger })
  opened.defer(() => api.close())
  return listen(api.handler, apiKey, opened)
}

async function listen(
  handler: Awaited<ReturnType<typeof startApi>>['handler'],
  apiKey: string,
  opened: AsyncDisposableStack,
) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('there is no port')
  return async (path: string, init: RequestInit = {}): Promise<ApiReply> => {
    const headers = new Headers(init.headers)
    headers.set('x-api-key', apiKey)
    const reply = await fetch(`http://127.0.0.1:${address.port}${path}`, { ...init, headers })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${text}`)
    return { headers: reply.headers, text }
  }
}
