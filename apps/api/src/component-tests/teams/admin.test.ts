import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

const token = 'operators-only-token'
let api: ApiUnderTest
before(async () => void (api = await startApiUnderTest({ env: { ATOLL_ADMIN_TOKEN: token } })))
after(() => api[Symbol.asyncDispose]())

async function ask(method: string, path: string, body?: unknown) {
  const { status, json } = await api.call(method, path, {
    headers: { 'x-admin-token': token },
    body,
  })
  return { status, json: Object(json) }
}

const configured = {
  concurrentSandboxes: 100,
  maxSandboxSeconds: 86_400,
  maxCpuCount: 8,
  maxMemoryMB: 8192,
  maxDiskSizeMB: 25_600,
  concurrentBuilds: 20,
  keptDiskMB: 102_400,
}

async function createTeam(name: string): Promise<string> {
  const { status, json } = await ask('POST', '/admin/teams', { name })
  assert.equal(status, 201)
  return json.teamID
}

test('a new team has the configured limits and is listed after older ones', async () => {
  const { status, json } = await ask('POST', '/admin/teams', {
    name: 'research',
    limits: { maxCpuCount: 4, maxMemoryMB: null },
  })
  assert.equal(status, 201)
  assert.deepEqual(json, {
    teamID: json.teamID,
    name: 'research',
    slug: 'research',
    createdAt: json.createdAt,
    limits: { ...configured, maxCpuCount: 4 },
  })
  const listed = await ask('GET', '/admin/teams')
  const ids = listed.json.map(({ teamID }: { teamID: string }) => teamID)
  assert.deepEqual(ids.slice(0, 2).toSorted(), [api.ours.teamId, api.theirs.teamId].toSorted())
  assert.deepEqual(listed.json.at(-1), json)
})

test('each team has a namespace of its own, which a new name does not change', async () => {
  const slugs: string[] = []
  for (const name of ['Équipe Nº 1', 'équipe  no 1', '***']) {
    const { json } = await ask('POST', '/admin/teams', { name })
    const renamed = await ask('PATCH', `/admin/teams/${json.teamID}`, { name: 'other' })
    assert.equal(renamed.json.slug, json.slug)
    slugs.push(json.slug.replace(json.teamID.slice(0, 8), 'ID'))
  }
  assert.deepEqual(slugs, ['equipe-no-1', 'equipe-no-1-ID', 'team'])
})

test('an update changes only the named limits; null restores the configured one', async () => {
  const id = await createTeam('before')
  const first = await ask('PATCH', `/admin/teams/${id}`, {
    limits: { concurrentSandboxes: 3, maxDiskSizeMB: 7 },
  })
  assert.equal(first.json.name, 'before')
  const limits = { ...configured, concurrentSandboxes: 3, maxDiskSizeMB: 7 }
  assert.deepEqual(first.json.limits, limits)
  const change = { name: 'after', limits: { concurrentSandboxes: null } }
  const second = await ask('PATCH', `/admin/teams/${id}`, change)
  assert.equal(second.json.name, 'after')
  assert.deepEqual(second.json.limits, { ...limits, concurrentSandboxes: 100 })
})

test('a key of a team works until an operator deletes it', async () => {
  const id = await createTeam('keys')
  const { status, json } = await ask('POST', `/admin/teams/${id}/api-keys`, { name: 'first' })
  assert.equal(status, 201)
  assert.deepEqual([json.name, json.createdBy, json.lastUsed], ['first', null, null])
  const use = () => api.call('GET', '/sandboxes', { headers: { 'x-api-key': json.key } })
  assert.equal((await use()).status, 200)
  const elsewhere = `/admin/teams/${api.ours.teamId}/api-keys/${json.id}`
  assert.equal((await ask('DELETE', elsewhere)).status, 404)
  assert.equal((await ask('DELETE', `/admin/teams/${id}/api-keys/${json.id}`)).status, 204)
  assert.equal((await use()).status, 401)
  assert.equal((await ask('DELETE', `/admin/teams/${id}/api-keys/${json.id}`)).status, 404)
})

test('a user gets one token and any number of teams', async () => {
  const [red, blue] = [await createTeam('red'), await createTeam('blue')]
  const first = await ask('POST', `/admin/teams/${red}/members`, { email: 'Ada@example.com' })
  assert.equal(first.status, 201)
  const { userID, accessToken } = first.json
  assert.match(accessToken, /^sk_e2b_[0-9a-f]{40}$/)
  for (const _ of [1, 2]) {
    const again = await ask('POST', `/admin/teams/${blue}/members`, { email: 'ada@example.com' })
    assert.deepEqual([again.status, again.json], [201, { userID, email: 'ada@example.com' }])
  }
  const teams = async () => {
    const headers = { authorization: `Bearer ${accessToken}` }
    const reply = await api.call('GET', '/teams', { headers })
    return Object(reply.json).map((team: { name: string; isDefault: boolean }) => [
      team.name,
      team.isDefault,
    ])
  }
  const teamOf = async () => {
    const headers = { authorization: `Bearer ${accessToken}` }
    return (await api.call('GET', `/v2/templates?teamID=${blue}`, { headers })).status
  }
  assert.deepEqual(await teams(), [
    ['red', true],
    ['blue', false],
  ])
  assert.equal(await teamOf(), 200)
  assert.equal((await ask('DELETE', `/admin/teams/${red}/members/${userID}`)).status, 204)
  assert.deepEqual(await teams(), [['blue', false]])
  assert.equal(await teamOf(), 200)
  assert.equal((await ask('DELETE', `/admin/teams/${blue}/members/${userID}`)).status, 204)
  assert.equal(await teamOf(), 403)
  assert.equal((await ask('DELETE', `/admin/teams/${blue}/members/${userID}`)).status, 404)
})

test('two operators who add the same new user create only one', async () => {
  const id = await createTeam('crowd')
  const added = await Promise.all(
    Array.from({ length: 5 }, () =>
      ask('POST', `/admin/teams/${id}/members`, { email: 'bob@example.com' }),
    ),
  )
  assert.deepEqual(new Set(added.map(({ status }) => status)), new Set([201]))
  assert.equal(new Set(added.map(({ json }) => json.userID)).size, 1)
  assert.equal(added.filter(({ json }) => json.accessToken !== undefined).length, 1)
})

test('all sandboxes of a team are killed and counted, and those of other teams are not', async () => {
  const theirs = { headers: { 'x-api-key': api.theirs.apiKey } }
  const body = { templateID: 'base', timeout: 300 }
  await Promise.all([1, 2, 3].map(() => api.create()))
  await api.call('POST', '/sandboxes', { ...theirs, body })
  const counts = await ask('GET', '/admin/sandboxes/running-counts')
  assert.deepEqual(counts.json, { [api.ours.teamId]: 3, [api.theirs.teamId]: 1 })
  const kill = (id: string) => ask('POST', `/admin/teams/${id}/sandboxes/kill`)
  api.node.failKills(Code.Internal)
  assert.deepEqual((await kill(api.theirs.teamId)).json, { killedCount: 0, failedCount: 1 })
  api.node.failKills(undefined)
  const { status, json } = await kill(api.ours.teamId)
  assert.deepEqual([status, json], [200, { killedCount: 3, failedCount: 0 }])
  assert.deepEqual((await kill(api.ours.teamId)).json, { killedCount: 0, failedCount: 0 })
  assert.deepEqual(Object((await api.call('GET', '/sandboxes')).json), [])
})

const somebody = randomUUID()
const badInput: readonly (readonly [string, string, unknown, number, RegExp])[] = [
  ['POST', '/admin/teams', '', 400, /body: is required/],
  ['POST', '/admin/teams', '{', 400, /JSON/],
  ['POST', '/admin/teams', {}, 400, /body\.name: is required/],
  ['POST', '/admin/teams', { name: '' }, 400, /body\.name/],
  ['POST', '/admin/teams', { name: 5 }, 400, /body\.name/],
  ['POST', '/admin/teams', { name: 'a\0' }, 400, /body\.name/],
  ['POST', '/admin/teams', { name: 'x'.repeat(129) }, 400, /body\.name/],
  ['POST', '/admin/teams', { name: 'a', limits: [] }, 400, /body\.limits/],
  ['POST', '/admin/teams', { name: 'a', limits: { maxCpuCount: 0 } }, 400, /limits\.maxCpuCount/],
  ['POST', '/admin/teams', { name: 'a', limits: { maxCpuCount: 1.5 } }, 400, /maxCpuCount/],
  ['POST', '/admin/teams', { name: 'a', limits: { maxMemoryMB: '9' } }, 400, /maxMemoryMB/],
  ['POST', '/admin/teams', { name: 'a', limits: { maxDiskSizeMB: 2 ** 40 } }, 400, /maxDiskSizeMB/],
  ['POST', '/admin/teams', { name: 'a', limits: { concurrentBuilds: 0 } }, 400, /concurrentBuilds/],
  ['PUT', '/admin/teams/7/block', { level: 'blocked', reason: 'a' }, 400, /path\.teamID/],
  ['PUT', `/admin/teams/${somebody}/block`, { level: 'blocked', reason: 'a' }, 404, /no team/],
  ['PUT', `/admin/teams/${somebody}/block`, { level: 'other', reason: 'a' }, 400, /body\.level/],
  ['PUT', `/admin/teams/${somebody}/block`, { level: 'banned' }, 400, /body\.reason/],
  ['PUT', `/admin/teams/${somebody}/block`, { level: 'banned', reason: '' }, 400, /body\.reason/],
  ['DELETE', '/admin/teams/7/block', undefined, 400, /path\.teamID/],
  ['DELETE', `/admin/teams/${somebody}/block`, undefined, 404, /There is no team/],
  ['PATCH', '/admin/teams/7', { name: 'a' }, 400, /path\.teamID: must be a UUID/],
  ['PATCH', `/admin/teams/${somebody}`, { name: 'a' }, 404, /There is no team/],
  ['PATCH', `/admin/teams/${somebody}`, { limits: { maxSandboxSeconds: -1 } }, 400, /maxSandbox/],
  ['POST', '/admin/teams/7/api-keys', { name: 'a' }, 400, /path\.teamID/],
  ['POST', `/admin/teams/${somebody}/api-keys`, { name: 'a' }, 404, /There is no team/],
  ['POST', `/admin/teams/${somebody}/api-keys`, {}, 400, /body\.name/],
  ['DELETE', `/admin/teams/7/api-keys/${somebody}`, undefined, 400, /path\.teamID/],
  ['DELETE', `/admin/teams/${somebody}/api-keys/7`, undefined, 400, /path\.apiKeyID/],
  ['DELETE', `/admin/teams/${somebody}/api-keys/${somebody}`, undefined, 404, /API key/],
  ['POST', '/admin/teams/7/members', { email: 'a@b.cd' }, 400, /path\.teamID/],
  ['POST', `/admin/teams/${somebody}/members`, { email: 'a@b.cd' }, 404, /There is no team/],
  ['POST', `/admin/teams/${somebody}/members`, { email: 'nobody' }, 400, /body\.email/],
  ['POST', `/admin/teams/${somebody}/members`, {}, 400, /body\.email/],
  ['DELETE', `/admin/teams/${somebody}/members/7`, undefined, 400, /path\.userID/],
  ['DELETE', `/admin/teams/${somebody}/members/${somebody}`, undefined, 404, /no member/],
  ['POST', '/admin/teams/7/sandboxes/kill', undefined, 400, /path\.teamID/],
  ['POST', `/admin/teams/${somebody}/sandboxes/kill`, undefined, 404, /There is no team/],
]

for (const [method, path, body, status, message] of badInput) {
  test(`${method} ${path} refuses ${JSON.stringify(body)?.slice(0, 60)}`, async () => {
    const reply = await ask(method, path, body)
    assert.deepEqual([reply.status, reply.json.code], [status, status])
    assert.match(reply.json.message, message)
  })
}
