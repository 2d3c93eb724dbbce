/**
 * The platform API on a store full of records, and a database shell on the same records. The simulated node is
 * unreachable, so the API does not reconcile the 100,000 sandboxes that run nowhere.
 */
import { once } from 'node:events'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { startApi } from '@atoll/api'
import type { FirstCredentials } from '@atoll/api'
import { loadApiConfig } from '@atoll/api/config'
import { simulateNode } from '@atoll/simulated-node/node'
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
  /** Sends a request with the key of the team. Throws unless it succeeds. */
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
  // The running server locks the file.
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
  // PostgreSQL would do this itself in time.
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

/** Copies one sandbox that the API created, so that the records have its format. */
async function fill(env: Env, openShell: () => Promise<DatabaseShell>): Promise<FirstCredentials> {
  let credentials: FirstCredentials | undefined
  {
    await using opened = new AsyncDisposableStack()
    const api = await startApi(loadApiConfig(env), {
      nodes: [simulateNode().transport],
      log: silentLogger,
      saveCredentials: async (made) => void (credentials = made),
    })
    opened.defer(() => api.close())
    if (!credentials) throw new Error('The store already has a team')
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
  const api = await startApi(loadApiConfig(env), { nodes: [node.transport], log: silentLogger })
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
  if (address === null || typeof address === 'string')
    throw new Error('The server does not listen on a TCP port')
  return async (path: string, init: RequestInit = {}): Promise<ApiReply> => {
    const headers = new Headers(init.headers)
    headers.set('x-api-key', apiKey)
    const reply = await fetch(`http://127.0.0.1:${address.port}${path}`, { ...init, headers })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${text}`)
    return { headers: reply.headers, text }
  }
}
