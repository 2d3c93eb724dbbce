/** How an action on many sandboxes ends early, and how it waits for the rate limit. On a whole server. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { startDashboardUnderTest } from '../../sim/dashboard-client.ts'
import { openSessionFile } from '../session-file.ts'
import { openSessions } from '../sessions.ts'
import { createUpstream } from '../upstream.ts'
import type { Upstream } from '../upstream.ts'
import { createBulkJob } from './bulk-job.ts'
import type { BulkAction, BulkJob } from './bulk-job.ts'

const count = 10
/** Calls that an action has under way at a time. */
const atOnce = 4

async function setup(env: Record<string, string> = {}) {
  const dashboard = await startDashboardUnderTest(env)
  const sessions = await openSessions(
    openSessionFile(join(dashboard.dataDir, 'sessions-under-test.json'), silentLogger),
    systemClock,
  )
  const upstream = createUpstream(dashboard.url())
  const statuses: number[] = []
  const platform: Upstream = {
    ...upstream,
    async send(call) {
      const reply = await upstream.send(call)
      statuses.push(reply.statusCode ?? 0)
      return reply
    },
  }
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) {
    const body = { templateID: 'base', timeout: 600 }
    const { json, text, status } = await dashboard.platform('POST', '/v2/sandboxes', body)
    assert.equal(status, 201, text)
    ids.push(String(Object(json).sandboxID))
  }
  const createJob = (action: BulkAction, token: string, some = ids) =>
    createBulkJob(
      action,
      { ids: some, isCut: false },
      { platform, findKey: () => sessions.findKey(token) },
    )
  return {
    ...{ dashboard, sessions, ids, statuses, createJob },
    listed: async () =>
      Number((await dashboard.platform('GET', '/v2/sandboxes')).headers['x-total-matches']),
    async [Symbol.asyncDispose]() {
      upstream.close()
      await dashboard[Symbol.asyncDispose]()
    },
  }
}

async function endOf(job: BulkJob) {
  await waitFor('the end of the action', () => job.progress().state !== 'running')
  const { state, succeeded, failed } = job.progress()
  return { state, succeeded, failed }
}

test('the end of the session stops an action, and the rest is not touched', async () => {
  await using bulk = await setup()
  const { dashboard, sessions } = bulk
  const token = await sessions.open(dashboard.apiKey)
  const job = bulk.createJob('kill', token)
  const release = dashboard.node.holdKills()
  job.start()
  await waitFor('the first calls', () => dashboard.node.begun('kill') === atOnce)
  await sessions.close(token)
  release()
  assert.deepEqual(await endOf(job), { state: 'stopped', succeeded: atOnce, failed: 0 })
  assert.equal(await bulk.listed(), count - atOnce)
  assert.equal(dashboard.node.begun('kill'), atOnce)
})

test('an action whose session has ended before its start touches nothing', async () => {
  await using bulk = await setup()
  const { dashboard, sessions, statuses } = bulk
  const token = await sessions.open(dashboard.apiKey)
  const job = bulk.createJob('kill', token)
  await sessions.close(token)
  job.start()
  assert.deepEqual(await endOf(job), { state: 'stopped', succeeded: 0, failed: 0 })
  assert.deepEqual(statuses, [])
})

test('the deletion of the API key stops an action', async () => {
  await using bulk = await setup()
  const { dashboard, sessions } = bulk
  const made = await dashboard.platform('POST', '/api-keys', { name: 'for one action' })
  const token = await sessions.open(String(Object(made.json).key))
  const job = bulk.createJob('kill', token)
  const release = dashboard.node.holdKills()
  job.start()
  await waitFor('the first calls', () => dashboard.node.begun('kill') === atOnce)
  const removed = await dashboard.platform('DELETE', `/api-keys/${Object(made.json).id}`)
  assert.equal(removed.status, 204, removed.text)
  release()
  const { state, succeeded, failed } = await endOf(job)
  assert.deepEqual([state, succeeded], ['stopped', atOnce])
  assert.ok(failed >= 1 && failed <= atOnce, String(failed))
  assert.equal(await bulk.listed(), count - atOnce)
})

test('calls beyond the rate limit are sent again after the time that the API says', async () => {
  await using bulk = await setup({ ATOLL_RATE_LIMITS: 'sandbox.pause=1/2' })
  const { dashboard, sessions, statuses, ids } = bulk
  const some = ids.slice(0, 3)
  const job = bulk.createJob('pause', await sessions.open(dashboard.apiKey), some)
  job.start()
  assert.deepEqual(await endOf(job), { state: 'finished', succeeded: some.length, failed: 0 })
  assert.ok(statuses.includes(429), statuses.join())
  assert.equal(statuses.filter((status) => status < 300).length, some.length)
})

test('a stop ends the wait for the rate limit, and nothing more is changed', async () => {
  await using bulk = await setup({ ATOLL_RATE_LIMITS: 'sandbox.kill=1/3600' })
  const { dashboard, sessions, statuses } = bulk
  const job = bulk.createJob('kill', await sessions.open(dashboard.apiKey))
  job.start()
  // One call succeeds, and its worker meets the limit at the next sandbox.
  await waitFor(
    'all workers to wait',
    () => statuses.filter((status) => status === 429).length === atOnce,
  )
  job.stop()
  assert.deepEqual(await endOf(job), { state: 'stopped', succeeded: 1, failed: 0 })
  assert.equal(statuses.length, atOnce + 1)
  assert.equal(await bulk.listed(), count - 1)
})
