/** Requests that wait for a connection of a full pool, in a cluster. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { waitFor } from '@atoll/kit/wait'
import { Pool } from 'pg'
import { makeStore, onPostgres } from '../../sim/store.ts'
import { throughProxy } from '../../sim/tcp-proxy.ts'
import { headStartMs, joinPools, requireWritable } from './primary-pool.ts'

/** One connection to the primary, and a server that refuses connections. */
async function setup() {
  await using opened = new AsyncDisposableStack()
  const store = opened.use(await makeStore('empty'))
  const { proxy: other, store: refusing } = await throughProxy(store)
  opened.use(other)
  other.cut()
  const open = (connectionString: string) =>
    new Pool({ connectionString, max: 1, onConnect: requireWritable })
  const primary = open(store.location)
  const pool = joinPools([
    { host: 'primary', pool: primary },
    { host: 'other', pool: open(refusing.location) },
  ])
  opened.defer(() => pool.end())
  const order: number[] = []
  const use = async (number: number, milliseconds: number) => {
    const client = await pool.connect()
    order.push(number)
    await client.query('select pg_sleep($1)', [milliseconds / 1000])
    client.release()
  }
  const owned = opened.move()
  return {
    ...{ pool, primary, other, order, use },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

test('a long queue for a primary that works asks no other server', onPostgres, async () => {
  await using cluster = await setup()
  const numbers = Array.from({ length: 40 }, (_, index) => index)
  const eachMs = (2 * headStartMs) / numbers.length
  await Promise.all(numbers.map((number) => cluster.use(number, eachMs)))
  assert.deepEqual(cluster.order, numbers)
  assert.equal(cluster.other.accepted(), 0)
})

test('requests keep their places in the queue when a search ends', onPostgres, async () => {
  await using cluster = await setup()
  const { pool, primary, use } = cluster
  const held = await pool.connect()
  const first = use(1, 100)
  await waitFor('the search to queue', () => primary.waitingCount === 2)
  const [second, third] = [use(2, 100), use(3, 100)]
  // Requests that have had no connection after the head start wait for the search too.
  await sleep(headStartMs * 1.5)
  const fourth = use(4, 100)
  held.release()
  await Promise.all([first, second, third, fourth])
  assert.deepEqual(cluster.order, [1, 2, 3, 4])
})
