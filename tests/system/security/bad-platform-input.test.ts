/**
 * Invalid requests that meet the whole server: its gateway, its limits and its log. The component tests of the API check
 * each operation and field (`component-tests/http`).
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, before, suite, test } from 'node:test'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { basic, send } from '../wire.ts'
import { checkHealth, checkRefusal, checkUnchanged, startTarget } from './bad-input-target.ts'
import type { Target } from './bad-input-target.ts'

let target: Target
let cloud: HttpCloud
let url: string
let sandbox: HttpSandbox
const otherTeamKey = `e2b_${randomBytes(20).toString('hex')}`

before(async () => {
  target = await startTarget((startedCloud) => addTeam(startedCloud, otherTeamKey))
  ;({ cloud, url, sandbox } = target)
})
after(() => cloud?.[Symbol.asyncDispose]())
afterEach(() => checkUnchanged(target))

suite('credentials', () => {
  const badCredentials: [string, Record<string, string>, RegExp][] = [
    ['no key', {}, /send an API key as `X-API-Key: e2b_…`/],
    ['an unknown key', { 'X-API-Key': `e2b_${'0'.repeat(40)}` }, /one that exists/],
    ['a key that is SQL', { 'X-API-Key': "' or 1=1 --" }, /40 hexadecimal digits/],
    ['an unknown token', { Authorization: `Bearer sk_e2b_${'0'.repeat(40)}` }, /one that exists/],
    ['basic authentication', { Authorization: basic('user') }, /send an API key/],
  ]
  const operations: [string, string][] = [
    ['POST', '/sandboxes'],
    ['POST', '/v2/sandboxes'],
    ['GET', '/v2/sandboxes'],
    ['GET', '/sandboxes/{id}'],
    ['DELETE', '/sandboxes/{id}'],
    ['POST', '/sandboxes/{id}/timeout'],
    ['POST', '/v2/sandboxes/{id}/connect'],
    ['GET', '/api-keys'],
    ['POST', '/api-keys'],
  ]
  for (const [name, credentials, message] of badCredentials) {
    test(`${name} is 401 for every operation`, async () => {
      for (const [method, path] of operations) {
        const headers = { 'Content-Type': 'application/json', ...credentials }
        const call = { method, path: path.replace('{id}', sandbox.sandboxID), headers }
        const body = JSON.stringify({ templateID: 'base', timeout: 0, name: 'x' })
        const reply = await send(url, method === 'POST' ? { ...call, body } : call)
        checkRefusal(reply, 401, message)
      }
    })
  }

  test('a sandbox of another team is 404 for every operation, and not listed', async () => {
    const asOtherTeam = (method: string, path: string, body?: object) =>
      cloud.platform(method, path, body, { 'X-API-Key': otherTeamKey })
    const { sandboxID: id } = sandbox
    for (const reply of [
      await asOtherTeam('GET', `/sandboxes/${id}`),
      await asOtherTeam('DELETE', `/sandboxes/${id}`),
      await asOtherTeam('POST', `/sandboxes/${id}/timeout`, { timeout: 0 }),
      await asOtherTeam('POST', `/sandboxes/${id}/connect`, { timeout: 0 }),
      await asOtherTeam('POST', `/v2/sandboxes/${id}/connect`, {}),
    ]) {
      checkRefusal(reply, 404, new RegExp(`Sandbox ${id} was not found`))
    }
    const listReply = await asOtherTeam('GET', '/v2/sandboxes')
    assert.deepEqual([listReply.status, listReply.json], [200, []])
  })
})

suite('requests to create a sandbox', () => {
  const base = { templateID: 'base' }
  test('broken JSON and bad fields are refused', async () => {
    for (const path of ['/sandboxes', '/v2/sandboxes']) {
      checkRefusal(await cloud.platform('POST', path, '{"templateID":"base"}}'), 400, /JSON/)
      const wrongTimeout = { ...base, timeout: '60' }
      const reply = await cloud.platform('POST', path, wrongTimeout)
      checkRefusal(reply, 400, /body\.timeout: expected number/)
    }
  })

  for (const framing of [{}, { 'Transfer-Encoding': 'chunked' }]) {
    test(`a body of 17 MiB is 413 with the headers ${JSON.stringify(framing)}`, async () => {
      const body = JSON.stringify({ ...base, padding: 'x'.repeat(17 * 1024 * 1024) })
      const reply = await cloud.platform('POST', '/v2/sandboxes', body, framing)
      checkRefusal(reply, 413, /at most 16 MiB/)
    })
  }

  test('a body with a Content-Type other than JSON is 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'nonsense']) {
      const headers = { 'Content-Type': type }
      const reply = await cloud.platform('POST', '/v2/sandboxes', base, headers)
      checkRefusal(reply, 415, /Content-Type: application\/json/)
    }
  })
})

suite('paths and methods of the platform', () => {
  const ids: [string, number, RegExp][] = [
    ['..', 400, /Invalid sandbox ID/],
    ['%2e%2e', 400, /Invalid sandbox ID/],
    ['..%2f..%2fetc%2fpasswd', 400, /Invalid sandbox ID/],
    ['I0ABCDEF', 400, /Invalid sandbox ID/],
    ['a-b-c', 400, /Invalid sandbox ID/],
    ['a%20b', 400, /Invalid sandbox ID/],
    ['a%00', 400, /Invalid sandbox ID/],
    ["a'or'1", 400, /Invalid sandbox ID/],
    ['%zz', 400, /not a valid url component/],
    ['i00000000000000000000', 404, /was not found/],
    ['a'.repeat(1000), 404, /was not found/],
    ['a'.repeat(2000), 414, /check the id/],
  ]
  for (const [id, status, message] of ids) {
    test(`the sandbox ID ${id.slice(0, 40)} (${id.length} characters) is ${status}`, async () => {
      const { platform } = cloud
      checkRefusal(await platform('GET', `/sandboxes/${id}`), status, message)
      checkRefusal(await platform('DELETE', `/sandboxes/${id}`), status, message)
      for (const action of ['timeout', 'connect']) {
        const reply = await platform('POST', `/sandboxes/${id}/${action}`, { timeout: 9 })
        checkRefusal(reply, status, message)
      }
    })
  }

  test('an unsupported method is 405, an unknown path is 404', async () => {
    checkRefusal(await cloud.platform('PUT', '/v2/sandboxes'), 405, /use POST, GET/)
    checkRefusal(await cloud.platform('GET', '/v9/sandboxes'), 404, /openapi\.json/)
    checkRefusal(await cloud.platform('GET', '/../etc/passwd'), 404, /openapi\.json/)
  })
})

suite('the server', () => {
  test('refuses request headers of 40 KB', async () => {
    const junk = { 'X-Junk': 'x'.repeat(40_000) }
    checkRefusal(await cloud.platform('GET', '/v2/sandboxes', undefined, junk), 431, /16 KiB/)
  })

  test('is healthy afterwards, and has logged no error', () => checkHealth(target))
})

/** Adds a team to the database, since no operation does. Stops the server meanwhile: it has the database open. */
async function addTeam({ installation }: HttpCloud, key: string): Promise<void> {
  await installation.interrupt()
  const store = new DatabaseSync(join(installation.dataDir, 'atoll.db'))
  const team = randomUUID()
  const hash = createHash('sha256').update(key).digest('hex')
  const now = Date.now()
  store.prepare('insert into teams (id, name, created_at) values (?, ?, ?)').run(team, 'x', now)
  store
    .prepare(
      'insert into api_keys (id, team_id, name, hash, mask, created_at) values (?, ?, ?, ?, ?, ?)',
    )
    .run(randomUUID(), team, 'x', hash, '{}', now)
  store.close()
  await installation.start()
}
