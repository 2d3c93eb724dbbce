import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newSandboxId } from '@atoll/kit/id'
import { silentLogger } from '@atoll/kit/log'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { startApi } from '../../api.ts'
import { findTemplate } from '../../app/templates/find-template.ts'
import { loadApiConfig } from '../../config.ts'
import { openStores } from '../../db/stores.ts'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import { simulateNode } from '@atoll/simulated-node/node'
import { makeStore, unsavedKeys } from '../../sim/store.ts'

/** Crash recovery: nothing is lost or left over, whenever the server stops. */

test('a restart changes nothing about running sandboxes', async () => {
  await using api = await startApiUnderTest()
  const ids = [await api.create({ metadata: { a: 'b' } }), await api.create()]
  const list = (await api.call('GET', '/v2/sandboxes')).json
  const details = await Promise.all(ids.map((id) => api.call('GET', `/sandboxes/${id}`)))
  await api.restart()
  assert.deepEqual((await api.call('GET', '/v2/sandboxes')).json, list)
  for (const { json } of details) {
    const { sandboxID } = Object(json)
    assert.deepEqual((await api.call('GET', `/sandboxes/${sandboxID}`)).json, json)
  }
  assert.deepEqual(api.node.killed, [])
})

test('acknowledged changes survive the death of the process, and its lock on the store does not', async () => {
  const script = `
    import { startApiUnderTest } from ${JSON.stringify(import.meta.resolve('../../sim/api.ts'))}
    const api = await startApiUnderTest()
    const id = await api.create({ metadata: { a: 'b' } })
    process.stdout.write(JSON.stringify({ id, folder: api.folder, location: api.store.location }), () => {
      process.kill(process.pid, 'SIGKILL')
    })`
  const { signal, stdout } = await tryRun(process.execPath, ['--input-type=module', '-e', script])
  assert.equal(signal, 'SIGKILL')
  const { id, folder, location } = JSON.parse(stdout)
  const stores = await openStores(location, unsavedKeys())
  const { state, metadata } = (await stores.sandboxes.find(id)) ?? assert.fail('it is lost')
  assert.deepEqual([state, metadata], ['running', { a: 'b' }])
  await stores.close()
  await rm(folder, { recursive: true })
})

test('a crash in the middle of a create leaves nothing', async () => {
  await using api = await startApiUnderTest()
  const model = await api.create()
  const id = newSandboxId()
  await api.withStores(async ({ sandboxes }) => {
    const kept = (await sandboxes.find(model)) ?? assert.fail('no model')
    const { envdVersion: _, startedAt: __, endAt: ___, ...rest } = kept
    const unknown = { envdVersion: undefined, startedAt: undefined, endAt: undefined }
    await sandboxes.insert({ ...rest, ...unknown, id, state: 'creating' })
    api.node.addOrphan(id)
  })
  await waitFor('the leftover to go', () => !api.node.running.has(id))
  assert.deepEqual([...api.node.running.keys()], [model])
  await waitFor('the record', async () => {
    const { status, text } = await api.call('GET', `/sandboxes/${id}`)
    return status === 404 && /was never finished/.test(text)
  })
})

test('a crash in the middle of a kill is finished', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  await api.withStores(async ({ sandboxes }) => {
    await sandboxes.update(id, (current) => ({
      ...current,
      state: 'killing',
      endReason: 'reached the end of its timeout',
    }))
  })
  await waitFor('the end', () => api.node.running.size === 0)
  await waitFor('the record', async () => {
    return /end of its timeout/.test((await api.call('GET', `/sandboxes/${id}`)).text)
  })
})

test('a create during the shutdown is canceled and cleaned up', async () => {
  await using api = await startApiUnderTest()
  const release = api.node.holdCreates()
  const created = api.call('POST', '/v2/sandboxes', { body: { templateID: 'base' } })
  await waitFor('the sandbox on the node', () => api.node.running.size === 1)
  await api.stop()
  const { status, json } = await created
  assert.deepEqual([status, Object(json).code], [503, 503])
  assert.equal(api.node.running.size, 0)
  release()
})

test('sandboxes that the node lost are ended, and unknown ones on the node are killed', async () => {
  await using api = await startApiUnderTest()
  const lost = await api.create()
  const kept = await api.create()
  await api.stop()
  api.node.end(lost, 'vanished', 'silently')
  const stray = newSandboxId()
  api.node.addOrphan(stray)
  await api.restart()
  const { status, json } = await api.call('GET', `/sandboxes/${lost}`)
  assert.equal(status, 404)
  assert.match(Object(json).message, /its node does not have it any more/)
  await waitFor('the stray to go', () => !api.node.running.has(stray))
  assert.equal((await api.call('GET', `/sandboxes/${kept}`)).status, 200)
})

test('a paused sandbox without a record is not touched', async () => {
  await using api = await startApiUnderTest()
  const known = await api.create()
  await api.call('POST', `/sandboxes/${known}/pause`)
  await api.withStores(async ({ sandboxes }) => {
    const record = (await sandboxes.find(known)) ?? assert.fail('no record')
    const ended = new Date(0)
    await sandboxes.update(known, () => ({ ...record, state: 'ended', endedAt: ended }))
    await sandboxes.deleteEndedBefore(new Date(1), 10)
  })
  const next = await api.create()
  await api.restart()
  assert.equal((await api.call('GET', `/sandboxes/${next}`)).status, 200)
  assert.deepEqual(api.node.killed, [])
})

test('a store that does not belong to the data directory is refused before anything is removed', async () => {
  await using api = await startApiUnderTest()
  await api.create()
  await api.stop()
  await writeFile(join(api.folder, 'store-id'), 'of another store\n')
  await assert.rejects(api.restart(), { reason: 'store_mismatch' })
  assert.deepEqual(api.node.killed, [])
})

test('a sandbox whose record the node cannot read keeps its own, refuses to be used, and can be deleted', async () => {
  await using api = await startApiUnderTest()
  const [paused, running, gone] = [await api.create(), await api.create(), await api.create()]
  await api.call('POST', `/sandboxes/${paused}/pause`)
  await api.stop()
  for (const id of [paused, running]) api.node.quarantine(id)
  api.node.end(gone, 'vanished', 'silently')
  await api.restart()
  const states = await Promise.all(
    [paused, running, gone].map(async (id) => {
      const { status, json } = await api.call('GET', `/sandboxes/${id}`)
      return [status, Object(json).state]
    }),
  )
  assert.deepEqual(states, [
    [200, 'paused'],
    [200, 'running'],
    [404, undefined],
  ])
  const resumed = await api.call('POST', `/sandboxes/${paused}/connect`, { body: { timeout: 60 } })
  assert.deepEqual([resumed.status, Object(resumed.json).code], [409, 409])
  assert.match(Object(resumed.json).message, /cannot be used/)
  const repaused = await api.call('POST', `/sandboxes/${running}/pause`)
  assert.equal(repaused.status, 409)
  assert.equal(Object((await api.call('GET', `/sandboxes/${paused}`)).json).state, 'paused')
  assert.equal(Object((await api.call('GET', `/sandboxes/${running}`)).json).state, 'running')
  assert.equal((await api.call('DELETE', `/sandboxes/${paused}`)).status, 204)
  assert.equal((await api.call('GET', `/sandboxes/${paused}`)).status, 404)
})

test('a sandbox that ended while the watch was lost is found, and the watch comes back', async () => {
  await using api = await startApiUnderTest()
  await waitFor('the watch', () => api.node.watchers === 1)
  const [silent, loud] = [await api.create(), await api.create()]
  api.node.dropWatchers()
  api.node.end(silent, 'ran out of memory')
  await waitFor(
    'its end',
    async () => (await api.call('GET', `/sandboxes/${silent}`)).status === 404,
  )
  await waitFor('the watch again', () => api.node.watchers === 1)
  api.node.end(loud, 'its first process exited')
  await waitFor('the news', async () =>
    /its first process exited/.test((await api.call('GET', `/sandboxes/${loud}`)).text),
  )
})

test('a node that does not answer neither stops the start nor ends sandboxes', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create()
  await api.stop()
  api.node.failAll(Code.Unavailable)
  await api.restart()
  assert.equal((await api.call('GET', `/sandboxes/${id}`)).status, 200)
  assert.equal((await api.call('POST', '/sandboxes', { body: { templateID: 'base' } })).status, 503)
  api.node.failAll(undefined)
  await api.create()
})

test('records of ended sandboxes are kept for a week', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const id = await api.create()
  await api.call('DELETE', `/sandboxes/${id}`)
  const message = async () => Object((await api.call('GET', `/sandboxes/${id}`)).json).message
  clock.advance(7 * 86_400)
  await api.restart()
  assert.match(await message(), /it was killed/)
  clock.advance(1)
  await api.restart()
  assert.equal(await message(), `Sandbox ${id} was not found`)
})

async function freshStart(
  env: Readonly<Record<string, string>>,
  saveCredentials?: (saved: object) => Promise<void>,
) {
  const { transport } = simulateNode()
  return startApi(loadApiConfig(env), {
    nodes: [transport],
    log: silentLogger,
    ...(saveCredentials && { saveCredentials }),
  })
}

test('only the first start creates credentials, and writes their file before the store', async () => {
  await using store = await makeStore('empty')
  await assert.rejects(
    freshStart(store.env, async () => {
      throw new Error('the disk is full')
    }),
    /the disk is full/,
  )
  const file = join(store.folder, 'credentials')
  const first = await freshStart(store.env, (saved) => writeFile(file, JSON.stringify(saved)))
  const credentials = first.firstCredentials ?? assert.fail('none were made')
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), credentials)
  assert.match(credentials.apiKey, /^e2b_[0-9a-f]{40}$/)
  assert.match(credentials.accessToken, /^sk_e2b_[0-9a-f]{40}$/)
  await first.close()
  const second = await freshStart(store.env, async () => assert.fail('saved again'))
  assert.equal(second.firstCredentials, undefined)
  await second.close()
})

test('only its owner can read the embedded store, one process can open it, and it holds no plain secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-api-'))
  const api = await freshStart({ ATOLL_DATA_DIR: folder })
  const { apiKey, accessToken } = api.firstCredentials ?? assert.fail('none were made')
  const store = join(folder, 'atoll.db')
  assert.equal((await stat(store)).mode & 0o777, 0o600)
  await assert.rejects(openStores(store, unsavedKeys()), /in use by another Atoll process/)
  await api.close()
  const bytes = await readFile(store, 'latin1')
  assert.ok(!bytes.includes(apiKey) && !bytes.includes(accessToken))
  await rm(folder, { recursive: true })
})

test('the sizes of the base template follow the configuration, its ids stay', async () => {
  await using store = await makeStore('empty')
  const base = async (memory: string) => {
    const config = loadApiConfig({ ...store.env, ATOLL_BASE_MEMORY_MB: memory })
    const parts = { nodes: [simulateNode().transport], log: silentLogger }
    await (await startApi(config, parts)).close()
    const stores = await openStores(store.location, unsavedKeys())
    const template = await findTemplate(stores.templates, 'base', 'any team')
    await stores.close()
    return template
  }
  const [before, after] = [await base('512'), await base('2048')]
  assert.deepEqual(after, {
    ...before,
    resources: { ...before.resources, memoryMb: 2048 },
  })
})
