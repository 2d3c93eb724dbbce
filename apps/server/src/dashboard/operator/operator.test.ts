import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startDashboardUnderTest } from '../../sim/dashboard-client.ts'
import type { DashboardUnderTest } from '../../sim/dashboard-client.ts'

const adminToken = 'the-token-of-the-operator'

suite('the operator of the dashboard', () => {
  let dashboard: DashboardUnderTest
  let cookie: string
  before(async () => {
    dashboard = await startDashboardUnderTest({ ATOLL_ADMIN_TOKEN: adminToken })
    cookie = await dashboard.signIn('/bff/operator/session', { token: adminToken })
  })
  after(() => dashboard[Symbol.asyncDispose]())

  const ask = (method: string, path: string, body?: unknown) =>
    dashboard.ask(method, `/bff/operator${path}`, { headers: { cookie }, body })

  test('signs in with the token alone; the browser gets a session and not the token', async () => {
    assert.match(cookie, /^atoll-operator=[\w-]{43}$/)
    assert.equal((await ask('GET', '/session')).status, 204)
    for (const token of ['', 'wrong', `${adminToken}x`, 'line\nbreak', 'ä']) {
      const refused = await dashboard.ask('POST', '/bff/operator/session', { body: { token } })
      assert.ok([400, 401].includes(refused.status), `${token}: ${refused.status}`)
      assert.equal(refused.headers['set-cookie'], undefined)
    }
  })

  test('reads nodes and teams, and drains a node', async () => {
    const [node] = Object((await ask('GET', '/nodes')).json)
    assert.equal(node.status, 'ready')
    assert.equal((await ask('POST', `/nodes/${node.id}`, { status: 'draining' })).status, 204)
    assert.equal(Object((await ask('GET', '/nodes')).json)[0].status, 'draining')
    assert.equal((await ask('POST', `/nodes/${node.id}`, { status: 'ready' })).status, 204)
    assert.equal((await ask('GET', '/admin/sandboxes/running-counts')).status, 200)
  })

  test('changes limits, blocks a team, and kills all its sandboxes', async () => {
    const [team] = Object((await ask('GET', '/admin/teams')).json)
    const path = `/admin/teams/${team.teamID}`
    const raised = await ask('PATCH', path, { limits: { concurrentSandboxes: 7 } })
    assert.equal(Object(raised.json).limits.concurrentSandboxes, 7)
    const created = await dashboard.platform('POST', '/v2/sandboxes', { templateID: 'base' })
    assert.equal(created.status, 201, created.text)
    const killed = await ask('POST', `${path}/sandboxes/kill`)
    assert.deepEqual(killed.json, { killedCount: 1, failedCount: 0 })
    assert.equal(
      (await ask('PUT', `${path}/block`, { level: 'banned', reason: 'test' })).status,
      200,
    )
    assert.equal((await ask('DELETE', `${path}/block`)).status, 200)
  })

  test('never gets keys or tokens into the browser, nor operations of a team', async () => {
    const [team] = Object((await ask('GET', '/admin/teams')).json)
    const path = `/admin/teams/${team.teamID}`
    for (const [method, target] of [
      ['POST', `${path}/api-keys`],
      ['POST', `${path}/members`],
      ['GET', '/v2/sandboxes'],
      ['GET', '/nodes/../v2/sandboxes'],
      ['GET', '/nodes/..'],
      ['GET', '/nodes/%2e%2e'],
      ['POST', `${path}/sandboxes/kill/../../api-keys`],
    ] as const) {
      assert.equal((await ask(method, target)).status, 404, target)
    }
  })

  test('needs its own session: that of a team is none, and other sites are refused', async () => {
    const team = await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey })
    const asTeam = await dashboard.ask('GET', '/bff/operator/nodes', { headers: { cookie: team } })
    assert.equal(asTeam.status, 401)
    const asOperator = await dashboard.ask('GET', '/bff/api/v2/sandboxes', { headers: { cookie } })
    assert.equal(asOperator.status, 401)
    const foreign = await dashboard.ask('POST', '/bff/operator/nodes/x', {
      headers: { cookie, origin: 'http://evil.localhost' },
      body: { status: 'draining' },
    })
    assert.equal(foreign.status, 403)
  })

  test('a new sign-in has a new token, and ends the session before', async () => {
    const oldCookie = cookie
    const signedIn = await dashboard.ask('POST', '/bff/operator/session', {
      headers: { cookie },
      body: { token: adminToken },
    })
    cookie = String(signedIn.headers['set-cookie']).split(';', 1)[0] ?? ''
    assert.notEqual(cookie, oldCookie)
    assert.equal((await ask('GET', '/nodes')).status, 200)
    const stale = await dashboard.ask('GET', '/bff/operator/nodes', {
      headers: { cookie: oldCookie },
    })
    assert.equal(stale.status, 401)
  })

  test('leaves operator mode', async () => {
    assert.equal((await ask('DELETE', '/session')).status, 204)
    assert.equal((await ask('GET', '/nodes')).status, 401)
  })

  test('is signed out when the team signs out of the same browser', async () => {
    cookie = await dashboard.signIn('/bff/operator/session', { token: adminToken })
    assert.equal((await ask('GET', '/session')).status, 204)
    const team = await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey })
    const both = { headers: { cookie: `${team}; ${cookie}` } }
    const answer = await dashboard.ask('DELETE', '/bff/session', both)
    assert.equal(answer.status, 204)
    assert.match(String(answer.headers['set-cookie']), /atoll-operator=;/)
    assert.equal((await ask('GET', '/session')).status, 401)
  })
})
