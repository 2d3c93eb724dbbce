import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { sql } from 'kysely'
import { makeStore, onPostgres } from '../../sim/store.ts'
import { throughProxy } from '../../sim/tcp-proxy.ts'
import { openPostgres } from '../postgres.ts'

/** One database that is reached through two proxies, as if two servers had it. */
async function setup({ silenceMs = 6000 } = {}) {
  await using opened = new AsyncDisposableStack()
  const store = opened.use(await makeStore('empty'))
  const [first, second] = [await throughProxy(store), await throughProxy(store)]
  for (const { proxy } of [first, second]) opened.use(proxy)
  const url = new URL(store.location)
  const hosts = [first, second].map(({ proxy }) => `${url.hostname}:${proxy.port}`)
  const location = store.location.replace(url.host, hosts.join(','))
  const { db } = openPostgres(location, { statementMs: 4000, silenceMs })
  opened.defer(() => db.destroy())
  const one = async () => (await sql<{ one: number }>`select 1 as one`.execute(db)).rows[0]?.one
  const owned = opened.move()
  return {
    ...{ db, one, store, first: first.proxy, second: second.proxy },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Statements on connections that were open fail before the others are asked. */
const works = (one: () => Promise<unknown>) => () =>
  one().then(
    () => true,
    (error: unknown) => {
      assert.ok(error instanceof Fault && error.reason === 'store_unavailable', String(error))
      return false
    },
  )

test('statements go to the server that is left, back and forth', onPostgres, async () => {
  await using cluster = await setup()
  const { one, first, second } = cluster
  assert.equal(await one(), 1)
  first.cut()
  await waitFor('the second server', works(one))
  first.restore()
  second.cut()
  await waitFor('the first server again', works(one))
  first.cut()
  await assert.rejects(one(), (error) => error instanceof Fault && error.kind === 'unavailable')
  second.restore()
  await waitFor('the second server again', works(one))
})

test('a server that falls silent is given up for the other', onPostgres, async () => {
  await using cluster = await setup()
  assert.equal(await cluster.one(), 1)
  cluster.first.freeze()
  await waitFor('the second server', works(cluster.one))
})

test(
  'a promoted standby is found while a silent server holds up the search',
  onPostgres,
  async () => {
    await using cluster = await setup({ silenceMs: 30_000 })
    const { one, first, second } = cluster
    first.freeze()
    second.cut()
    const answer = one()
    await waitFor('the refusal of the second server', () => second.accepted() > 0)
    second.restore()
    assert.equal(await answer, 1)
    first.cut()
  },
)

test('servers that take no writes are refused, with a reason for each', onPostgres, async () => {
  await using cluster = await setup()
  const name = sql.id(new URL(cluster.store.location).pathname.slice(1))
  await sql`alter database ${name} set default_transaction_read_only = on`.execute(cluster.db)
  const { db } = openPostgres(cluster.store.location.replace('/test_', ',127.0.0.1:1/test_'))
  const refused = await sql`select 1`.execute(db).then(
    () => assert.fail('a standby was used'),
    (error: unknown) => error,
  )
  await db.destroy()
  assert.ok(refused instanceof Fault && refused.reason === 'store_unavailable')
  assert.match(String(refused.cause), /takes no writes: a standby/)
  assert.match(String(refused.cause), /ECONNREFUSED/)
})
