import assert from 'node:assert/strict'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { openDatabase } from '../db/stores.ts'
import { startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'
import { onPostgres } from '../sim/store.ts'

/** Private values in the store: sealed in its tables, and still of use after rotations and with wrong keys. */

const adminToken = 'an-admin-token-of-the-test'
let api: ApiUnderTest
beforeEach(async () => {
  api = await startApiUnderTest({ env: { ATOLL_ADMIN_TOKEN: adminToken } })
})
afterEach(() => api[Symbol.asyncDispose]())

const privates = ['Hush-Secret', 'Hush-Password', 'Hush-Header']
const network = {
  egressProxy: { address: 'proxy.example:1080', username: 'me', password: privates[1] },
  rules: {
    'a.b': [{ transform: { headers: { Key: 'Bearer ${e2b.secrets.Key}', Own: privates[2] } } }],
  },
}
const keyFile = () => join(api.folder, 'encryption-keys')

async function setup(): Promise<string> {
  const { status } = await api.call('POST', '/secrets', {
    body: { name: 'key', value: privates[0] },
  })
  assert.equal(status, 201)
  return api.create({ network })
}

/** Stops the API, and works on the tables themselves. */
async function withTables<T>(work: (db: ReturnType<typeof openDatabase>['db']) => Promise<T>) {
  await api.stop()
  const { db } = openDatabase(api.store.location)
  return work(db).finally(() => db.destroy())
}

const readValues = () =>
  withTables(async (db) => {
    const secrets = await db.selectFrom('secrets').select('value').execute()
    const sandboxes = await db.selectFrom('sandboxes').select('network').execute()
    return JSON.stringify([secrets, sandboxes])
  })

function rulesOnNode(id: string) {
  const { headerRules = [], proxy } = api.node.running.get(id)?.network ?? {}
  return { headers: { ...headerRules[0]?.headers }, password: proxy?.password }
}

const expected = {
  headers: { Key: `Bearer ${privates[0]}`, Own: privates[2] },
  password: privates[1],
}

async function checkResume(id: string): Promise<void> {
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  assert.equal((await api.call('POST', `/v2/sandboxes/${id}/connect`)).status, 201)
  assert.deepEqual(rulesOnNode(id), expected)
}

const rotate = () =>
  api.call('POST', '/admin/encryption/rotate', { headers: { 'x-admin-token': adminToken } })

test('the tables and files of the store hold no private value in plain text', async () => {
  const id = await setup()
  assert.deepEqual(rulesOnNode(id), expected)
  const values = await readValues()
  for (const value of privates) assert.ok(!values.includes(value), values)
  for (const name of await readdir(api.folder)) {
    const bytes = await readFile(join(api.folder, name))
    for (const value of privates) assert.ok(!bytes.includes(value), name)
  }
  await api.restart()
  await checkResume(id)
})

test('a changed secret reaches the sandboxes that refer to it', async () => {
  const id = await setup()
  await api.call('POST', '/secrets/key', { body: { value: 'other' } })
  assert.deepEqual(rulesOnNode(id).headers, { ...expected.headers, Key: 'Bearer other' })
})

test('values from before encryption are used, and sealed at the next start', async () => {
  const id = await setup()
  await withTables(async (db) => {
    await db
      .updateTable('secrets')
      .set({ value: privates[0] ?? '' })
      .execute()
    await db
      .updateTable('sandboxes')
      .set({ network: JSON.stringify(network) })
      .execute()
    await db.deleteFrom('settings').where('name', '=', 'encryption_check').execute()
  })
  await rm(keyFile())
  await api.restart()
  await checkResume(id)
  const values = await readValues()
  for (const value of privates) assert.ok(!values.includes(value), values)
  for (const name of await readdir(api.folder)) {
    const bytes = await readFile(join(api.folder, name))
    for (const value of privates) assert.ok(!bytes.includes(value), name)
  }
})

test('a rotation encrypts everything again, also what is written meanwhile, and drops the old key', async () => {
  const id = await setup()
  const before = await readFile(keyFile(), 'utf8')
  const secretsMade = Array.from({ length: 20 }, (_, at) =>
    api.call('POST', '/secrets', { body: { name: `more-${at}`, value: `m${at}` } }),
  )
  const [rotation, ...created] = await Promise.all([rotate(), ...secretsMade])
  assert.equal(rotation.status, 200, rotation.text)
  assert.deepEqual(new Set(created.map(({ status }) => status)), new Set([201]))
  const { currentKeyID, isNewKey, droppedKeyIDs, unreadable } = Object(rotation.json)
  assert.deepEqual([isNewKey, droppedKeyIDs.length, unreadable], [true, 1, 0])
  const values = await readValues()
  const used = values.match(/(?<=atoll\.sealed\.v1\.)[0-9a-f]{16}/g) ?? []
  assert.deepEqual([...new Set(used)], [currentKeyID])
  const keys = (text: string) => text.match(/^[0-9a-f]{64}$/gm) ?? []
  const after = await readFile(keyFile(), 'utf8')
  assert.deepEqual([keys(before).length, keys(after).length], [1, 1])
  assert.notDeepEqual(keys(before), keys(after))
  await api.restart()
  await checkResume(id)
})

test('a rotation that a crash interrupted is completed by the next start and the next call', async () => {
  const id = await setup()
  await api.stop()
  const old = await readFile(keyFile(), 'utf8')
  await writeFile(keyFile(), `${'5'.repeat(64)}\n${old}`, { mode: 0o600 })
  await api.restart()
  await checkResume(id)
  const { currentKeyID, isNewKey, droppedKeyIDs } = Object((await rotate()).json)
  assert.deepEqual([isNewKey, droppedKeyIDs.length], [false, 1])
  const values = await readValues()
  assert.ok(values.includes(currentKeyID))
  assert.ok(!values.includes(droppedKeyIDs[0]))
  await api.restart()
  await checkResume(id)
})

test('a wrong or lost key file is refused at the start, and nothing changes', async () => {
  const id = await setup()
  const right = await readFile(keyFile(), 'utf8')
  const values = await readValues()
  for (const wrong of [`${'7'.repeat(64)}\n`, undefined]) {
    await (wrong === undefined ? rm(keyFile()) : writeFile(keyFile(), wrong, { mode: 0o600 }))
    await assert.rejects(api.restart(), { reason: 'encryption_key_wrong' })
    const left = await readFile(keyFile(), 'utf8').catch(() => undefined)
    assert.equal(left, wrong)
  }
  await writeFile(keyFile(), right, { mode: 0o600 })
  assert.equal(await readValues(), values)
  await api.restart()
  await checkResume(id)
})

test('a damaged value stops only what needs it', async () => {
  const id = await setup()
  const free = await api.create()
  await withTables(async (db) => {
    const [secret] = await db.selectFrom('secrets').selectAll().execute()
    const value = `${secret?.value.slice(0, -6)}AAAAAA`
    await db.updateTable('secrets').set({ value }).execute()
    const rows = await db.selectFrom('sandboxes').select(['id', 'network']).execute()
    const damaged = rows
      .find((row) => row.id === id)
      ?.network?.replace(/.{6}("\}\}\}\])/, 'AAAAAA$1')
    await db
      .updateTable('sandboxes')
      .set({ network: damaged ?? '' })
      .where('id', '=', id)
      .execute()
  })
  await api.restart()
  const kept = await readValues()
  await api.restart()
  assert.equal((await api.call('GET', '/v2/sandboxes')).status, 200)
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  const resume = await api.call('POST', `/v2/sandboxes/${id}/connect`)
  assert.equal(resume.status, 503, resume.text)
  assert.match(resume.text, /decrypt/)
  const use = await api.call('POST', '/v2/sandboxes', {
    body: { templateID: 'base', network: { rules: network.rules } },
  })
  assert.equal(use.status, 503, use.text)
  const { keptKeyIDs, unreadable } = Object((await rotate()).json)
  assert.deepEqual([keptKeyIDs.length, unreadable], [1, 2])
  const secretValue = /"value":"([^"]+)"/.exec(kept)?.[1] ?? assert.fail()
  assert.ok((await readValues()).includes(secretValue), 'the damaged value is still there')
  await api.restart()
  await api.call('POST', '/secrets/key', { body: { value: privates[0] } })
  assert.equal((await api.call('DELETE', `/sandboxes/${id}`)).status, 204)
  assert.equal((await api.call('DELETE', `/sandboxes/${free}`)).status, 204)
  const again = await api.create({ network })
  assert.deepEqual(rulesOnNode(again), expected)
})

test('servers on one database need the same keys, and rotate alone', onPostgres, async () => {
  const id = await setup()
  await using other = await startApiUnderTest({ beside: api })
  const refused = await rotate()
  assert.equal(refused.status, 409, refused.text)
  assert.match(refused.text, /other servers/)
  assert.equal((await other.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  assert.equal((await other.call('POST', `/v2/sandboxes/${id}/connect`)).status, 201)
  assert.deepEqual(rulesOnNode(id), expected)
})
