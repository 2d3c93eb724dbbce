import { Kysely, PostgresDialect, sql } from 'kysely'
import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import { Pool, TypeOverrides, types } from 'pg'
import type { PoolClient, PoolConfig } from 'pg'
import type { Database } from './database.ts'
import { splitHosts } from './postgres/hosts.ts'
import { joinPools, requireWritable } from './postgres/primary-pool.ts'
import type { ConnectionPool } from './postgres/primary-pool.ts'
import { connectionFault, toStoreError } from './postgres-errors.ts'
import { reportTo } from './query-record.ts'
import type { OnQuery } from './query-record.ts'
import type { Schema } from './schema.ts'

/**
 * Opens a PostgreSQL store; all PostgreSQL connection code is in this file. Any number of processes may share a
 * database.
 */
export function openPostgres(
  url: string,
  limits: PostgresLimits = usualLimits,
  onQuery?: OnQuery,
): Database {
  const options = {
    max: requestConnections,
    statement_timeout: limits.statementMs,
    idle_in_transaction_session_timeout: limits.statementMs,
    query_timeout: limits.silenceMs,
    connectionTimeoutMillis: limits.silenceMs,
  }
  const db = connect(url, options, onQuery)
  // A limited time in the queue is for requests, whose clients wait.
  const patient = { ...options, max: backgroundConnections, connectionTimeoutMillis: queueLimitMs }
  const background = connect(url, patient, onQuery)
  return {
    ...{ db, background },
    close: async () => void (await Promise.all([db.destroy(), background.destroy()])),
    async exclusively(work) {
      const unhurried = connect(url, {
        max: 2,
        lock_timeout: lockTimeoutMs,
        connectionTimeoutMillis: lockTimeoutMs,
      })
      try {
        return await unhurried.transaction().execute(async (holder) => {
          await sql`select pg_advisory_xact_lock(${sql.lit(lockId)})`.execute(holder)
          return work(unhurried)
        })
      } finally {
        await unhurried.destroy()
      }
    },
  }
}

const requestConnections = 10
/** Enough for the visits of a thousand nodes. Few, so that statements of requests do not wait for the CPUs of the database. */
const backgroundConnections = 4
const queueLimitMs = 60_000

export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text)
}

/** "atoll" as a number: advisory locks have no names. */
const lockId = 0x61_74_6f_6c_6c
const lockTimeoutMs = 60_000

export interface PostgresLimits {
  /** Timeout on the server for a statement and for an idle transaction. */
  readonly statementMs: number
  /** Timeout on our side for a server that does not respond. */
  readonly silenceMs: number
}

/** Long enough for every statement, and short enough to still answer the waiting request. */
const usualLimits: PostgresLimits = { statementMs: 10_000, silenceMs: 12_000 }

function connect(url: string, options: PoolConfig, onQuery?: OnQuery): Kysely<Schema> {
  return new Kysely<Schema>({
    dialect: new PostgresDialect({ pool: adapt(openPool(url, options)) }),
    ...(onQuery && { log: reportTo(onQuery) }),
  })
}

/** With several hosts in the URL, connections go to the one that takes writes. */
function openPool(url: string, options: PoolConfig): ConnectionPool {
  const urls = splitHosts(url) ?? [url]
  if (urls.length === 1) return createPool(url, options)
  return joinPools(
    urls.map((one) => ({
      host: new URL(one).host,
      pool: createPool(one, { ...options, onConnect: requireWritable }),
    })),
  )
}

function createPool(url: string, options: PoolConfig): Pool {
  const pool = new Pool({
    application_name: 'atoll',
    keepAlive: true,
    types: numbers,
    ...options,
    connectionString: url,
  })
  // A broken connection fails its statement, and the pool drops the connection. The event adds nothing, but without a
  // listener it would crash the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** Parses counts, sums and times, which pg returns as text because they may exceed the safe integer range. */
const numbers = new TypeOverrides()
numbers.setTypeParser(types.builtins.INT8, toNumber)
numbers.setTypeParser(types.builtins.NUMERIC, Number)

function toNumber(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(`the store holds ${text}, which is too large for a number`)
}

/** Adapts the pool to Kysely and converts errors to faults. */
function adapt(pool: ConnectionPool): PostgresPool {
  return {
    options: {},
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch((error: unknown) => {
        throw connectionFault(error)
      })
      return adaptClient(client)
    },
  }
}

function adaptClient(client: PoolClient): PostgresPoolClient {
  let isLost = false
  async function send(text: string, values: readonly unknown[]) {
    try {
      return await client.query(text, [...values])
    } catch (error) {
      const { fault, keepsConnection } = toStoreError(error)
      // The statement still runs after a timeout on our side, so the connection must not be reused.
      isLost ||= !keepsConnection
      throw fault
    }
  }
  function query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>>
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>
  function query(text: unknown, values: readonly unknown[] = []): unknown {
    if (typeof text !== 'string') throw new TypeError('results are read whole, without a cursor')
    return send(text, values)
  }
  return { query, release: (destroy) => client.release(destroy === true || isLost) }
}
