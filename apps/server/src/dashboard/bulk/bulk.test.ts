import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { startDashboardUnderTest } from '../../sim/dashboard-client.ts'
import type { DashboardUnderTest } from '../../sim/dashboard-client.ts'

const many = 130

suite('actions on all matches of a filter', () => {
  let dashboard: DashboardUnderTest
  let cookie: string

  const create = async (metadata: object) => {
    const body = { templateID: 'base', timeout: 600, metadata }
    const { status, json, text } = await dashboard.platform('POST', '/v2/sandboxes', body)
    assert.equal(status, 201, text)
    return String(Object(json).sandboxID)
  }
  const ask = (method: string, path: string, body?: unknown, session = cookie) =>
    dashboard.ask(method, path, { headers: { cookie: session }, body })
  const prepare = async (action: string, filter: object) => {
    const { status, json, text } = await ask('POST', '/bff/bulk', { action, filter })
    assert.equal(status, 201, text)
    return Object(json)
  }
  const finish = async (id: string) => {
    assert.equal((await ask('POST', `/bff/bulk/${id}/start`)).status, 200)
    let last = Object(undefined)
    await waitFor('the end of the action', async () => {
      last = Object((await ask('GET', `/bff/bulk/${id}`)).json)
      return last.state === 'finished' || last.state === 'stopped'
    })
    return last
  }
  const total = async (query: string) =>
    Number((await dashboard.platform('GET', `/v2/sandboxes?${query}`)).headers['x-total-matches'])

  before(async () => {
    dashboard = await startDashboardUnderTest({ ATOLL_TEAM_CONCURRENT_SANDBOXES: '500' })
    cookie = await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey })
    for (let index = 0; index < many; index += 1) await create({ kind: 'many' })
    await create({ kind: 'other' })
  })
  after(() => dashboard[Symbol.asyncDispose]())

  test('changes nothing before it is started, and then all matches beyond one page', async () => {
    const { id, state, total: count } = await prepare('pause', { search: 'kind=many' })
    assert.deepEqual([state, count], ['prepared', many])
    assert.equal(await total('state=paused'), 0)
    const late = await create({ kind: 'many' })
    const { state: end, succeeded, failed } = await finish(id)
    assert.deepEqual([end, succeeded, failed], ['finished', many, 0])
    assert.equal(await total('state=paused'), many)
    const { json } = await dashboard.platform('GET', `/sandboxes/${late}`)
    assert.equal(Object(json).state, 'running')
  })

  test('only running sandboxes can be paused and extended', async () => {
    assert.equal((await prepare('pause', { state: 'paused' })).total, 0)
    const { id, total: count } = await prepare('extend', {})
    assert.equal(count, 2)
    assert.equal((await finish(id)).succeeded, 2)
    const { json } = await dashboard.platform('GET', '/v2/sandboxes?state=running')
    for (const { endAt } of Object(json)) assert.ok(Date.parse(endAt) - Date.now() > 3_000_000)
  })

  test('reports failures by reason, without the IDs that would make each one different', async () => {
    const filter = { metadata: 'kind=many', state: 'running' }
    const [{ id }, { id: again }] = [await prepare('pause', filter), await prepare('pause', filter)]
    assert.equal((await finish(id)).succeeded, 1)
    const { failed, failures } = await finish(again)
    assert.equal(failed, 1)
    assert.equal(failures.length, 1)
    assert.match(failures[0].reason, /<id>/)
    assert.equal(failures[0].sandboxIds.length, 1)
  })

  test('ends what matches, and counts what has ended meanwhile as done', async () => {
    const ended = await create({ kind: 'gone' })
    const { id } = await prepare('kill', { metadata: 'kind=gone' })
    assert.equal((await dashboard.platform('DELETE', `/sandboxes/${ended}`)).status, 204)
    assert.deepEqual((await finish(id)).succeeded, 1)
    const all = await prepare('kill', { metadata: 'kind=many' })
    assert.equal(all.total, many + 1)
    assert.equal((await finish(all.id)).succeeded, many + 1)
    assert.equal(await total(''), 1)
  })

  test('changes nothing when it is stopped before its start', async () => {
    const { id } = await prepare('kill', {})
    assert.equal((await ask('DELETE', `/bff/bulk/${id}`)).status, 204)
    assert.equal((await finish(id)).state, 'stopped')
    assert.equal(await total(''), 1)
  })

  test('is refused to other sessions, without a session, and with a bad request', async () => {
    const { id } = await prepare('kill', {})
    const other = await dashboard.signIn('/bff/session', { apiKey: dashboard.apiKey })
    assert.equal((await ask('POST', `/bff/bulk/${id}/start`, undefined, other)).status, 404)
    assert.equal((await ask('POST', `/bff/bulk/${id}/start`, undefined, 'x=y')).status, 401)
    for (const body of [
      {},
      { action: 'delete', filter: {} },
      { action: 'kill' },
      { action: 'kill', filter: { state: 'ended' } },
      { action: 'kill', filter: { search: 'a'.repeat(201) } },
      { action: 'kill', filter: { search: 'a '.repeat(11) } },
    ]) {
      assert.equal((await ask('POST', '/bff/bulk', body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await ask('PATCH', `/bff/bulk/${id}`)).status, 404)
    assert.equal(await total(''), 1)
  })
})
