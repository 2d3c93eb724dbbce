import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase, Pool, PoolClient } from 'pg'
import { findWritable } from './find-writable.ts'
import type { PooledServer } from './find-writable.ts'

export interface ConnectionPool {
  connect(): Promise<PoolClient>
  end(): Promise<void>
}

/** How long a connection to the last primary may take before the others are asked too: its machine may be gone without a word. */
export const headStartMs = 2_000

/** For `onConnect` of a pool: refuses a server that takes no writes, such as a standby. */
export async function requireWritable(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>(
    'show transaction_read_only',
  )
  if (rows[0]?.transaction_read_only !== 'off') throw new Error('it takes no writes: a standby')
}

/**
 * Joins the pools of the servers of a cluster, whose connections must be writable. Connections go to the server that was the primary last
 * time. When it does not answer or is no longer the primary, all are asked, and the first that takes writes is the new one.
 */
export function joinPools(given: readonly PooledServer[]): ConnectionPool {
  const servers = given.map((server) => ({ ...server, isBusy: watchHandOuts(server.pool) }))
  let [primary] = servers
  let search: Promise<Pool> | undefined

  const findPrimary = async (): Promise<Pool> => {
    primary = await findWritable(servers)
    return primary.pool
  }
  return {
    async connect() {
      if (!primary) throw new Error('the URL of the database names no server')
      const { pool, isBusy } = primary
      const connecting = pool.connect()
      const isCertain = pool.idleCount > 0 && pool.idleCount >= pool.waitingCount
      const early = isCertain ? await connecting : await waitForTurn(connecting, isBusy)
      if (early) return early
      search ??= findPrimary().finally(() => (search = undefined))
      return connectAfter(search, { pool, connecting })
    },
    async end() {
      await Promise.all(servers.map(({ pool }) => pool.end()))
    },
  }
}

/** Returns a check for a pool that is full and works: it has handed out a connection lately. */
function watchHandOuts(pool: Pool): () => boolean {
  let handedOutAt = -Infinity
  pool.on('acquire', () => void (handedOutAt = performance.now()))
  return () => pool.totalCount >= pool.options.max && performance.now() - handedOutAt < headStartMs
}

/**
 * Returns undefined when other servers are to be asked too. A full pool that works is no reason for that: its connections
 * come in turn, or the wait ends with an error as without other servers.
 */
async function waitForTurn(
  connecting: Promise<PoolClient>,
  isBusy: () => boolean,
): Promise<PoolClient | undefined> {
  const attempt = connecting.catch(() => undefined)
  for (let turns = 0; ; turns += 1) {
    const early = await Promise.race([attempt, headStart()])
    if (early === 'late' && isBusy()) continue
    if (early === undefined && turns > 0 && isBusy()) return connecting
    return early === 'late' ? undefined : early
  }
}

/** Connects to the server that the search finds. An attempt at the same server keeps its place in the queue. */
async function connectAfter(
  search: Promise<Pool>,
  { pool, connecting }: { readonly pool: Pool; readonly connecting: Promise<PoolClient> },
): Promise<PoolClient> {
  const attempt = connecting.catch(() => undefined)
  const client = await Promise.race([attempt, search.catch(() => undefined).then(() => undefined)])
  if (client) return client
  const releaseLate = () => void attempt.then((late) => late?.release())
  const found = await search.catch((error: unknown) => {
    releaseLate()
    throw error
  })
  if (found === pool) return firstOf([connecting, pool.connect()])
  releaseLate()
  return found.connect()
}

/** Returns the first connection. Others go back to the pool when they come. */
async function firstOf(attempts: readonly Promise<PoolClient>[]): Promise<PoolClient> {
  let isTaken = false
  const take = async (attempt: Promise<PoolClient>): Promise<PoolClient> => {
    const client = await attempt
    if (isTaken) client.release()
    isTaken = true
    return client
  }
  return Promise.any(attempts.map(take)).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors.at(-1) : error
  })
}

function headStart(): Promise<'late'> {
  return sleep(headStartMs, 'late', { ref: false })
}
