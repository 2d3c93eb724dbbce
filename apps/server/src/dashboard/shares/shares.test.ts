import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { startDashboardUnderTest } from '../../sim/dashboard-client.ts'
import type { DashboardUnderTest } from '../../sim/dashboard-client.ts'
import type { StoredShare } from './share-file.ts'
import { openShares } from './shares.ts'

suite('a share link', () => {
  let dashboard: DashboardUnderTest
  let cookie: string
  let id: string
  let otherId: string
  let token: string

  const make = async (metadata?: object) => {
    const body = { templateID: 'base', timeout: 3600, metadata }
    return String(Object((await dashboard.platform('POST', '/v2/sandboxes', body)).json).sandboxID)
  }
  const share = (body: unknown, sandboxId = id) =>
    dashboard.ask('POST', `/bff/sandboxes/${sandboxId}/shares`, { headers: { cookie }, body })
  const visit = (path: string, method = 'GET', given = token) =>
    dashboard.ask(method, path, { headers: { 'x-atoll-share': given } })

  before(async () => {
    dashboard = await startDashboardUnderTest()
    cookie = await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey })
    id = await make({ owner: 'secret-owner' })
    otherId = await make()
    const { status, json } = await share({ seconds: 3600 })
    assert.equal(status, 201)
    token = Object(json).token
  })
  after(() => dashboard[Symbol.asyncDispose]())

  test('shows one sandbox without a session, and neither tokens, rules nor metadata', async () => {
    const { status, json, text } = await visit('/bff/share/sandbox')
    assert.equal(status, 200)
    assert.deepEqual([Object(json).sandboxID, Object(json).state], [id, 'running'])
    assert.doesNotMatch(text, /Token|network|metadata|secret-owner/)
    assert.equal((await visit('/bff/share/metrics')).status, 200)
    assert.equal((await visit('/bff/share/logs')).status, 200)
  })

  test('reaches nothing else', async () => {
    for (const path of [
      `/bff/api/sandboxes/${id}`,
      '/bff/api/v2/sandboxes',
      '/bff/session',
      '/bff/operator/nodes',
      `/bff/sandboxes/${id}/shares`,
      `/bff/sandboxes/${id}/file?path=/etc/passwd`,
    ]) {
      assert.equal((await visit(path)).status, 401, path)
    }
    for (const path of [
      '/bff/share/',
      '/bff/share/changes',
      `/bff/share/../api/sandboxes/${otherId}`,
      `/bff/share/sandbox/${otherId}`,
      `/bff/share/%2e%2e/api/v2/sandboxes`,
    ]) {
      const { status, text } = await visit(path)
      assert.ok(status === 404 || status === 401, `${path}: ${status}`)
      assert.doesNotMatch(text, new RegExp(otherId), path)
    }
    const sneaky = await visit(`/bff/share/sandbox?sandboxID=${otherId}`)
    assert.equal(Object(sneaky.json).sandboxID, id)
  })

  test('changes nothing', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      assert.equal((await visit('/bff/share/sandbox', method)).status, 403, method)
    }
    assert.equal((await dashboard.platform('GET', `/sandboxes/${id}`)).status, 200)
  })

  test('a wrong token, and none, are refused', async () => {
    for (const wrong of ['', 'x', `${token}x`, token.slice(1)]) {
      assert.equal((await visit('/bff/share/sandbox', 'GET', wrong)).status, 401)
    }
    assert.equal((await dashboard.ask('GET', '/bff/share/sandbox')).status, 401)
  })

  test('the file has neither the token nor the API key, and the link survives a restart', async () => {
    const file = await readFile(join(dashboard.dataDir, 'dashboard-shares.json'), 'utf8')
    assert.ok(file.includes(id))
    assert.ok(!file.includes(token) && !file.includes(dashboard.apiKey))
    await dashboard.restart()
    assert.equal((await visit('/bff/share/sandbox')).status, 200)
  })

  test('only for a sandbox of the team, and for a sensible time', async () => {
    assert.equal((await share({ seconds: 3600 }, 'iunknown')).status, 404)
    for (const seconds of [0, 59, 7 * 86_400 + 1, 1.5, '60', null]) {
      assert.equal((await share({ seconds })).status, 400)
    }
    const signedOut = await dashboard.ask('POST', `/bff/sandboxes/${id}/shares`, {
      body: { seconds: 60 },
    })
    assert.equal(signedOut.status, 401)
  })

  test('shows an ended sandbox with the reason', async () => {
    const short = await make()
    const made = Object((await share({ seconds: 60 }, short)).json)
    await dashboard.platform('DELETE', `/sandboxes/${short}`)
    const { json } = await visit('/bff/share/sandbox', 'GET', made.token)
    assert.equal(Object(json).state, 'ended')
    assert.match(Object(json).message, /it was killed/)
  })

  test('is listed without its token, and ends when it is revoked', async () => {
    const listed = await dashboard.ask('GET', `/bff/sandboxes/${id}/shares`, {
      headers: { cookie },
    })
    assert.ok(!listed.text.includes(token))
    const [{ id: shareId }] = Object(listed.json).shares
    const revoke = () => dashboard.ask('DELETE', `/bff/shares/${shareId}`, { headers: { cookie } })
    assert.equal((await revoke()).status, 204)
    assert.equal((await revoke()).status, 404)
    assert.equal((await visit('/bff/share/sandbox')).status, 401)
    await dashboard.restart()
    assert.equal((await visit('/bff/share/sandbox')).status, 401)
  })
})

test('a share link ends at its time, belongs to its team, and is limited in number', async () => {
  let now = 1_000_000
  let stored: readonly StoredShare[] = []
  const file = {
    read: async () => [...stored],
    async write(shares: readonly StoredShare[]) {
      stored = shares
    },
  }
  const shares = await openShares(file, { now: () => new Date(now) })
  const wanted = { teamId: 't', sandboxId: 'i', apiKey: 'key', seconds: 60 }
  const { token, id } = await shares.create(wanted)
  assert.equal(shares.find(token)?.apiKey, 'key')
  assert.deepEqual(shares.list('other', 'i'), [])
  assert.equal(await shares.revoke('other', id), false)
  now += 60_000
  assert.equal(shares.find(token), undefined)
  assert.equal(await shares.revoke('t', id), false)
  for (let count = 0; count < 20; count += 1) await shares.create(wanted)
  await assert.rejects(shares.create(wanted), /Revoke one first/)
  assert.equal(stored.length, 20)
  for (let count = 20; count < 500; count += 1) {
    await shares.create({ ...wanted, sandboxId: `i${Math.floor(count / 20)}` })
  }
  await assert.rejects(shares.create({ ...wanted, sandboxId: 'last' }), /500 links of this team/)
  await shares.create({ ...wanted, teamId: 'other', sandboxId: 'last' })
})

test('a visitor does not learn why the team of a link is blocked', async () => {
  const adminToken = 'the-token-of-the-operator'
  await using dashboard = await startDashboardUnderTest({ ATOLL_ADMIN_TOKEN: adminToken })
  const headers = { cookie: await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey }) }
  const made = await dashboard.platform('POST', '/v2/sandboxes', { templateID: 'base' })
  const path = `/bff/sandboxes/${Object(made.json).sandboxID}/shares`
  const shared = await dashboard.ask('POST', path, { headers, body: { seconds: 60 } })
  const operator = {
    headers: { cookie: await dashboard.signIn('/bff/operator/session', { token: adminToken }) },
  }
  const [team] = Object((await dashboard.ask('GET', '/bff/operator/admin/teams', operator)).json)
  const blocked = await dashboard.ask('PUT', `/bff/operator/admin/teams/${team.teamID}/block`, {
    ...operator,
    body: { level: 'banned', reason: 'unpaid-invoice' },
  })
  assert.equal(blocked.status, 200)
  const refused = await dashboard.ask('GET', '/bff/share/sandbox', {
    headers: { 'x-atoll-share': Object(shared.json).token },
  })
  assert.equal(refused.status, 503, refused.text)
  assert.doesNotMatch(refused.text, /unpaid|blocked|banned/)
})
