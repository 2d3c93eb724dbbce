import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase, PoolClient } from 'pg'
import { findWritable } from './find-writable.ts'
import type { PooledServer } from './find-writable.ts'

export interface ConnectionPool {
  connect(): Promise<PoolClient>
  end(): Promise<void>
}

/** How long a connection to the last primary may take before the others are asked too: its machine may be gone without a word. */
const headStartMs = 2_000

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
export function joinPools(servers: readonly PooledServer[]): ConnectionPool {
  let [primary] = servers
  let search: Promise<void> | undefined

  const findPrimary = async (): Promise<void> => {
    primary = await findWritable(servers)
  }
  return {
    async connect() {
      if (!primary) throw new Error('the URL of the database names no server')
      const connecting = primary.pool.connect()
      if (primary.pool.idleCount > 0) return connecting
      const attempt = connecting.catch(() => undefined)
      const early = await Promise.race([attempt, headStart()])
      if (early && early !== 'late') return early
      search ??= findPrimary().finally(() => (search = undefined))
      if (early === 'late') {
        const client = await Promise.race([attempt, search.catch(() => undefined)])
        if (client) return client
        void attempt.then((late) => late?.release())
      }
      await search
      return primary.pool.connect()
    },
    async end() {
      await Promise.all(servers.map(({ pool }) => pool.end()))
    },
  }
}

function headStart(): Promise<'late'> {
  return sleep(headStartMs, 'late', { ref: false })
}
