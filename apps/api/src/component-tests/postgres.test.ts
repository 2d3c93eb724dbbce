import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { ensureKeyFile, keyFileOf } from '@atoll/kit/encryption/key-file'
import { newSandboxId } from '@atoll/kit/id'
import { createLogger, silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { sql } from 'kysely'
import { startApi } from '../api.ts'
import { loadApiConfig } from '../config.ts'
import { openDatabase, openStores } from '../db/stores.ts'
import { manualClock, startApiUnderTest } from '../sim/api.ts'
import { throughProxy } from '../sim/tcp-proxy.ts'
import { simulateNode } from '@atoll/simulated-node/node'
import { makeStore, onPostgres, shareStore, unsavedKeys } from '../sim/store.ts'

/** Cases specific to PostgreSQL: broken connections, and several processes on one store. */
test('a lost connection costs a 503, and the next request gets a new one', onPostgres, async () => {
  await using records = await makeStore()
  const { proxy, store } = await throughProxy(records)
  await using _ = proxy
  await using api = await startApiUnderTest({ store })
  const id = await api.create()
  proxy.cut()
  for (const path of [`/sandboxes/${id}`, '/v2/sandboxes', '/health']) {
    const { status, headers, json } = await api.call('GET', path)
    assert.deepEqual([status, headers.get('retry-after'), Object(json).code], [503, '1', 503])
  }
  const create = await api.call('POST', '/v2/sandboxes', { body: { templateID: 'base' } })
  assert.equal(create.status, 503)
  proxy.restore()
  await waitFor('the store', async () => (await api.call('GET', '/health')).status === 200)
  assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 200)
  assert.deepEqual([...api.node.running.keys()], [id])
})

test(
  'idle connections that the server ends are replaced without an error',
  onPostgres,
  async () => {
    await using api = await startApiUnderTest()
    const id = await api.create()
    const { db } = openDatabase(api.store.location)
    for (let round = 0; round < 3; round += 1) {
      await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`.execute(db)
      await waitFor('an answer', async () => {
        const { status } = await api.call('GET', `/sandboxes/${id}`)
        assert.ok(status === 200 || status === 503, String(status))
        return status === 200
      })
    }
    await db.destroy()
  },
)

test('the password of the database is in no log, whatever fails', onPostgres, async () => {
  await using records = await makeStore()
  const { proxy, store } = await throughProxy(records)
  await using _ = proxy
  const lines: string[] = []
  const write: Writable['_write'] = (chunk, _encoding, done) => {
    lines.push(String(chunk))
    done()
  }
  const log = createLogger('trace', new Writable({ write }))
  const url = new URL(store.location)
  url.password = 'verysecret'
  const config = loadApiConfig({ ...store.env, ATOLL_DATABASE_URL: url.href })
  const api = await startApi(config, { nodes: [simulateNode().transport], log })
  proxy.cut()
  await waitFor('complaints', () => lines.some((line) => line.includes('pass failed')))
  await api.close()
  const failed = await startApi(config, { nodes: [simulateNode().transport], log }).then(
    () => assert.fail('it started without a store'),
    (error: unknown) => error,
  )
  log.error({ err: failed }, 'not started')
  assert.match(String(failed), /127\.0\.0\.1:\d+\/test_\w+ cannot be used/)
  assert.ok(!lines.join('').includes('verysecret'))
})

test(
  'of processes that start together one makes the first team, and all use the same',
  onPostgres,
  async () => {
    await using store = await makeStore('empty')
    // All servers on one database need the same keys.
    await ensureKeyFile(keyFileOf(store.folder, undefined))
    const others = await Promise.all([1, 2, 3].map(() => shareStore(store)))
    const apis = await Promise.all(
      [store, ...others].map(({ env, folder }) =>
        startApi(loadApiConfig(env), {
          nodes: [simulateNode().transport],
          log: silentLogger,
          saveCredentials: ({ apiKey }) => writeFile(join(folder, 'key'), apiKey),
        }),
      ),
    )
    const made = apis.flatMap(({ firstCredentials }) => firstCredentials ?? [])
    const saved = await Promise.all(
      [store, ...others].map(({ folder }) => readFile(join(folder, 'key'), 'utf8').catch(() => [])),
    )
    assert.deepEqual(saved.flat(), [made[0]?.apiKey])
    const stores = await openStores(store.location, unsavedKeys())
    const { db } = openDatabase(store.location)
    const count = async (table: 'teams' | 'templates' | 'users' | 'settings') =>
      (await db.selectFrom(table).selectAll().execute()).length
    assert.deepEqual(
      [await count('teams'), await count('users'), await count('templates')],
      [1, 1, 1],
    )
    await Promise.all([db.destroy(), stores.close(), ...apis.map((api) => api.close())])
    for (const other of others) await other[Symbol.asyncDispose]()
  },
)

test(
  'a process does not touch a sandbox that another process is creating',
  onPostgres,
  async () => {
    await using first = await startApiUnderTest()
    await using second = await startApiUnderTest({ beside: first })
    const release = first.node.holdCreates()
    const creating = first.create()
    await waitFor('the sandbox on the node', () => first.node.running.size === 1)
    // Startup waits for a reconcile pass.
    await second.restart()
    assert.equal(first.node.running.size, 1)
    release()
    const id = await creating
    assert.equal((await second.call('GET', `/sandboxes/${id}`)).status, 200)
  },
)

test(
  'what a dead process was making is cleared up by another, once its lease is over',
  onPostgres,
  async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock })
    const model = await api.create({ timeout: 3600 })
    const id = newSandboxId()
    const stores = await openStores(api.store.location, unsavedKeys())
    const kept = (await stores.sandboxes.find(model)) ?? assert.fail('no model')
    const dead = { processId: 'dead', node: '' }
    await stores.leases.renew(dead, new Date(clock.now().getTime() + 10_000))
    const unknown = { envdVersion: undefined, startedAt: undefined, endAt: undefined }
    await stores.sandboxes.insert({
      ...kept,
      ...unknown,
      id,
      state: 'creating',
      holder: dead.processId,
    })
    api.node.addOrphan(id)
    clock.advance(9)
    await api.restart()
    assert.ok(api.node.running.has(id))
    clock.advance(1)
    await api.restart()
    await waitFor('its end', () => !api.node.running.has(id))
    assert.deepEqual([...api.node.running.keys()], [model])
    await stores.close()
  },
)

test('two processes end what is due once, and agree on everything', onPostgres, async () => {
  const clock = manualClock()
  await using first = await startApiUnderTest({ clock })
  await using second = await startApiUnderTest({ clock, beside: first })
  const apis = [first, second] as const
  const ids = await Promise.all(
    Array.from({ length: 10 }, (_, n) => (apis[n % 2] ?? first).create({ timeout: 10 + n })),
  )
  const listed = async (api: typeof first) =>
    Object((await api.call('GET', '/v2/sandboxes')).json).map(
      ({ sandboxID }: { sandboxID: string }) => sandboxID,
    )
  assert.deepEqual(await listed(first), await listed(second))
  // Concurrent changes of one record by both processes: none is lost and none is rejected.
  const replies = await Promise.all(
    ids.flatMap((id) =>
      apis.map((api) => api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout: 30 } })),
    ),
  )
  assert.ok(replies.every(({ status }) => status === 204))
  clock.advance(30)
  await waitFor('all ends', () => first.node.running.size === 0)
  for (const api of apis) {
    for (const id of ids) {
      await waitFor('its record to say why', async () => {
        const { json } = await api.call('GET', `/sandboxes/${id}`)
        return /it reached the end of its timeout/.test(Object(json).message)
      })
    }
  }
})

test(
  'a server with a node of its own is refused where another one is at work',
  onPostgres,
  async () => {
    await using store = await makeStore()
    await using other = await shareStore(store)
    const start = ({ env }: typeof store, nodeName: string) =>
      startApi(loadApiConfig(env), {
        nodes: [simulateNode(undefined, nodeName).transport],
        log: silentLogger,
        nodeName,
      })
    const first = await start(store, 'a:/data')
    try {
      await assert.rejects(start(other, 'b:/data'), /in use by a server with the node a:\/data/)
    } finally {
      await first.close()
    }
    await (await start(other, 'b:/data')).close()
  },
)

test('connects by two processes join one start, and a pause is shared', onPostgres, async () => {
  await using first = await startApiUnderTest()
  await using second = await startApiUnderTest({ beside: first })
  const { node } = first
  const id = await first.create()
  const pause = (api: typeof first) => api.call('POST', `/sandboxes/${id}/pause`)
  const connect = (api: typeof first) =>
    api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60 } })

  const releasePause = node.hold('pause')
  const pausing = pause(first)
  await waitFor('the pause', () => node.begun('pause') === 1)
  const [shared, waiting] = [pause(second), connect(second)]
  // Startup waits for a reconcile pass, which must leave the first process's pause alone.
  await second.restart()
  releasePause()
  assert.equal((await pausing).status, 204)
  // The second process's pause may arrive late and find the sandbox paused or already running again.
  assert.ok([204, 409, 503].includes((await shared).status))
  await waiting
  await waitFor('an end of it all', async () => {
    const { status } = await connect(second)
    return status === 200 || status === 201
  })
  assert.equal((await pause(second)).status, 204)

  const before = node.begun('resume')
  const releaseResume = node.hold('resume')
  const connects = [connect(first), connect(second), connect(first), connect(second)]
  await waitFor('the start', () => node.begun('resume') === before + 1)
  releaseResume()
  for (const { status } of await Promise.all(connects)) assert.ok(status === 200 || status === 201)
  assert.equal(node.begun('resume'), before + 1)
})

test(
  'what a dead process was pausing or resuming becomes what the node says, once its lease is over',
  onPostgres,
  async () => {
    const clock = manualClock()
    await using api = await startApiUnderTest({ clock })
    const [running, paused] = [await api.create({ timeout: 3600 }), await api.create()]
    await api.call('POST', `/sandboxes/${paused}/pause`)
    const stores = await openStores(api.store.location, unsavedKeys())
    const dead = { processId: 'dead', node: '' }
    await stores.leases.renew(dead, new Date(clock.now().getTime() + 10_000))
    const put = (id: string, state: 'pausing' | 'resuming') =>
      stores.sandboxes.update(id, (current) => ({ ...current, state, holder: 'dead' }))
    await put(running, 'pausing')
    await put(paused, 'resuming')
    const states = async () => {
      const found = await Promise.all([running, paused].map((id) => stores.sandboxes.find(id)))
      return found.map((sandbox) => sandbox?.state)
    }
    clock.advance(9)
    await api.restart()
    assert.deepEqual(await states(), ['pausing', 'resuming'])
    clock.advance(1)
    await api.restart()
    assert.deepEqual(await states(), ['running', 'paused'])
    assert.equal((await api.call('GET', `/sandboxes/${running}`)).status, 200)
    await stores.close()
  },
)
