import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { startDashboardUnderTest } from '../sim/dashboard-client.ts'
import type { DashboardUnderTest } from '../sim/dashboard-client.ts'
import { selectDenied } from './denied-connections.ts'

const now = Date.parse('2026-01-01T12:00:00Z')

test('each destination counts once, if its last attempt was denied within an hour', () => {
  const at = (minute: number) => new Date(now - minute * 60_000).toISOString()
  const one = (verdict: string, name: string, minute: number) => ({
    ...{ verdict, name, port: 443, count: 2, lastAt: at(minute) },
  })
  const selected = selectDenied(
    [
      one('denied', 'twice.example', 9),
      one('denied', 'twice.example', 8),
      one('denied', 'fixed.example', 7),
      one('allowed', 'fixed.example', 6),
      one('denied', 'old.example', 61),
      one('allowed', 'fine.example', 1),
      one('denied', 'new.example', 5),
    ],
    now,
  )
  assert.deepEqual(
    selected.map(({ name, count }) => [name, count]),
    [
      ['new.example', 2],
      ['twice.example', 4],
    ],
  )
  const many = Array.from({ length: 50 }, (_, index) => one('denied', `n${index}.example`, 1))
  assert.equal(selectDenied(many, now).length, 3)
})

suite('denied connections of the team', () => {
  let dashboard: DashboardUnderTest
  let cookie: string
  let id: string

  before(async () => {
    dashboard = await startDashboardUnderTest({ ATOLL_TEAM_CONCURRENT_SANDBOXES: '500' })
    cookie = await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey })
    const body = { templateID: 'base', network: { denyOut: ['0.0.0.0/0'] } }
    id = String(Object((await dashboard.platform('POST', '/v2/sandboxes', body)).json).sandboxID)
    const seen = { port: 443, protocol: 'tcp', count: 3n, lastMs: BigInt(Date.now()) }
    dashboard.node.connections.set(id, [
      { ...seen, name: 'wanted.example', verdict: Verdict.DENIED },
      { ...seen, name: 'other.example', verdict: Verdict.DENIED },
      { ...seen, name: 'good.example', verdict: Verdict.ALLOWED },
    ])
  })
  after(() => dashboard[Symbol.asyncDispose]())

  const names = async () => {
    const { status, json } = await dashboard.ask('GET', '/bff/denied', { headers: { cookie } })
    assert.equal(status, 200)
    const { denied } = Object(json)
    return denied.map(({ sandboxID, name }: Record<string, string>) => [sandboxID, name])
  }

  test('are listed until a rule allows their name', async () => {
    assert.deepEqual(await names(), [
      [id, 'wanted.example'],
      [id, 'other.example'],
    ])
    const rules = { allowOut: ['wanted.example'], denyOut: ['0.0.0.0/0'] }
    const changed = await dashboard.platform('PUT', `/sandboxes/${id}/network`, rules)
    assert.equal(changed.status, 204, changed.text)
    assert.deepEqual(await names(), [[id, 'other.example']])
  })

  test('are found among more sandboxes than one page of the list', async () => {
    for (let index = 0; index < 110; index += 1) {
      await dashboard.platform('POST', '/v2/sandboxes', { templateID: 'base' })
    }
    assert.deepEqual(await names(), [[id, 'other.example']])
  })

  test('need a session, and are only read', async () => {
    assert.equal((await dashboard.ask('GET', '/bff/denied')).status, 401)
    const posted = await dashboard.ask('POST', '/bff/denied', { headers: { cookie }, body: {} })
    assert.equal(posted.status, 404)
  })
})
