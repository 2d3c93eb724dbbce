import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { sql } from 'kysely'
import { throughProxy } from '../sim/tcp-proxy.ts'
import { makeStore, onPostgres } from '../sim/store.ts'
import { openPostgres } from './postgres.ts'

async function setup() {
  const store = await makeStore('empty')
  const { proxy, store: reached } = await throughProxy(store)
  const limits = { statementMs: 2000, silenceMs: 4000 }
  const { db, background, close } = openPostgres(reached.location, limits)
  const one = async () => (await sql<{ one: number }>`select 1 as one`.execute(db)).rows[0]?.one
  return {
    db,
    background,
    proxy,
    one,
    async [Symbol.asyncDispose]() {
      await close()
      await proxy[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

const isUnavailable = (error: unknown) =>
  error instanceof Fault && error.kind === 'unavailable' && error.reason === 'store_unavailable'

test(
  'a statement that takes too long is given up, its connection is kept',
  onPostgres,
  async () => {
    await using server = await setup()
    const pid = async () =>
      (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(server.db)).rows
    const before = await pid()
    await assert.rejects(sql`select pg_sleep(60)`.execute(server.db), isUnavailable)
    assert.deepEqual(await pid(), before)
  },
)

test(
  'a server that falls silent is given up, and its connection not used again',
  onPostgres,
  async () => {
    await using server = await setup()
    assert.equal(await server.one(), 1)
    server.proxy.freeze()
    await assert.rejects(server.one(), isUnavailable)
    server.proxy.restore()
    assert.equal(await server.one(), 1)
  },
)

test(
  'a transaction whose connection breaks is undone, and nothing is stuck',
  onPostgres,
  async () => {
    await using server = await setup()
    const { db, proxy } = server
    await sql`create table t (n int)`.execute(db)
    const broken = db.transaction().execute(async (transaction) => {
      await sql`insert into t values (1)`.execute(transaction)
      proxy.cut()
      await sql`insert into t values (2)`.execute(transaction)
    })
    await assert.rejects(broken, isUnavailable)
    proxy.restore()
    assert.deepEqual((await sql`select n from t`.execute(db)).rows, [])
  },
)

test(
  'counts, sums and times are numbers; what is too large for one is an error',
  onPostgres,
  async () => {
    await using server = await setup()
    const values = sql`select count(*) as a, sum(9007199254740991::bigint) as b, 1.5::numeric as c`
    assert.deepEqual((await values.execute(server.db)).rows, [
      { a: 1, b: 9007199254740991, c: 1.5 },
    ])
    await assert.rejects(sql`select 9007199254740992`.execute(server.db), /too large for a number/)
    assert.equal(await server.one(), 1)
  },
)

test('text with a zero character is a mistake of the caller', onPostgres, async () => {
  await using server = await setup()
  const asked = sql`select ${'a\0b'}::text`.execute(server.db)
  await assert.rejects(asked, (error) => error instanceof Fault && error.kind === 'invalid')
})

test('an invalid statement is an internal error', onPostgres, async () => {
  await using server = await setup()
  const wrong = sql`select nonsense`.execute(server.db)
  await assert.rejects(
    wrong,
    (error) => !(error instanceof Fault) && /nonsense/.test(String(error)),
  )
})

test('work in the background leaves connections for requests', onPostgres, async () => {
  await using server = await setup()
  const gate = Promise.withResolvers<void>()
  const hold = () => server.background.connection().execute(() => gate.promise)
  const held = Array.from({ length: 20 }, hold)
  try {
    assert.equal(await server.one(), 1)
  } finally {
    gate.resolve()
    await Promise.all(held)
  }
})
