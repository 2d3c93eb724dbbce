import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Template } from '@atoll/contracts/templates/manage'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'
import { requestBuild, build, buildStatus, startBuild } from '../../sim/build-client.ts'

/** Rejected build requests, and what other teams see of builds. */

function ask(api: ApiUnderTest, body: object, apiKey = api.ours.apiKey): Promise<Reply> {
  return api.call('POST', '/v3/templates', { body, headers: { 'x-api-key': apiKey } })
}

async function countTemplates(api: ApiUnderTest): Promise<number> {
  return Object((await api.call('GET', '/templates')).json).length
}

const badRequests: readonly (readonly [object, RegExp])[] = [
  [{}, /Name is required/],
  [{ name: '' }, /Name is required/],
  [{ name: 'no spaces' }, /name is malformed/],
  [{ name: 'somebody-else/mine' }, /namespace of the team/],
  [{ name: 'x'.repeat(129) }, /body\.name: must be at most 128 characters/],
  [{ name: `mine:${randomUUID()}` }, /looks like a build ID/],
  [{ name: 'mine', tags: ['Not!'] }, /tags: "Not!" is malformed/],
  [{ name: 'mine', tags: [randomUUID()] }, /looks like a build ID/],
  [{ name: 'mine', cpuCount: 3 }, /body\.cpuCount: must be 1 or an even number/],
  [{ name: 'mine', cpuCount: 34 }, /body\.cpuCount/],
  [{ name: 'mine', cpuCount: 0 }, /body\.cpuCount/],
  [{ name: 'mine', cpuCount: 16 }, /the build asks for 16 CPU cores \(limit 8\)/],
  [{ name: 'mine', memoryMB: 127 }, /body\.memoryMB/],
  [{ name: 'mine', memoryMB: 513 }, /body\.memoryMB: must be an even number/],
  [{ name: 'mine', memoryMB: 16_384 }, /16384 MiB of memory \(limit 8192\)/],
  [{ name: 'mine', minFreeDiskMb: 100_000 }, /100000 MiB of disk/],
  [{ name: 'mine', teamID: randomUUID() }, /teamID is not the team/],
]

test('bad build requests are refused with advice, and change nothing', async () => {
  await using api = await startApiUnderTest()
  for (const [body, message] of badRequests) {
    const { status, json } = await ask(api, body)
    assert.deepEqual([status, Object(json).code], [400, 400], JSON.stringify(body))
    assert.match(Object(json).message, message)
  }
  assert.equal(await countTemplates(api), 1)
})

test('a name that means something else is a conflict', async () => {
  await using api = await startApiUnderTest()
  const { templateId } = await requestBuild(api)
  const sandbox = await api.create()
  await api.call('POST', `/sandboxes/${sandbox}/snapshots`, { body: { name: 'copy' } })
  for (const [name, message] of [
    [templateId, /is the id of a template/],
    ['copy', /belongs to a snapshot/],
  ] as const) {
    const { status, json } = await ask(api, { name })
    assert.deepEqual([status, Object(json).code], [409, 409])
    assert.match(Object(json).message, message)
  }
  assert.equal(await countTemplates(api), 2)
})

test('waiting and running builds of a team are limited, except those of the same tag', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_TEAM_CONCURRENT_BUILDS: '2' } })
  const release = api.node.hold('build')
  const first = await requestBuild(api, { tags: ['a'] })
  await startBuild(api, first)
  await requestBuild(api, { tags: ['b'] })
  const { status, json } = await ask(api, { name: 'mine', tags: ['c'] })
  assert.deepEqual([status, Object(json).code], [429, 429])
  assert.match(Object(json).message, /build limit of the team reached \(2\)/)
  assert.equal((await ask(api, { name: 'other' })).status, 429)
  assert.equal(await countTemplates(api), 2)
  // Requests for the same tag replace existing builds.
  for (const tag of ['b', 'a'])
    assert.equal((await ask(api, { name: 'mine', tags: [tag] })).status, 202)
  assert.equal((await ask(api, { name: 'their' }, api.theirs.apiKey)).status, 202)
  release()
})

test('the older form makes a template under its alias', async () => {
  await using api = await startApiUnderTest()
  const body = { alias: 'old', cpuCount: 1, memoryMB: 256 }
  const { status, json } = await api.call('POST', '/v2/templates', { body })
  assert.equal(status, 202)
  const { templateID: templateId, buildID: buildId, aliases, names } = Object(json)
  assert.deepEqual([aliases, names], [['old'], undefined])
  assert.equal((await startBuild(api, { templateId, buildId })).status, 202)
  await waitFor('the build', () => api.node.builds.requests[0]?.memoryMb === 256)
})

test('a user can build for another of their teams, and is shown as its creator', async () => {
  await using api = await startApiUnderTest()
  const headers = { authorization: `Bearer ${api.ours.accessToken}` }
  const ours = { name: 'mine', teamID: api.ours.teamId }
  assert.equal((await api.call('POST', '/v3/templates', { headers, body: ours })).status, 202)
  const theirs = { name: 'mine', teamID: api.theirs.teamId }
  assert.equal((await api.call('POST', '/v3/templates', { headers, body: theirs })).status, 403)
  const [template] = Object((await api.call('GET', '/v2/templates')).json)
  const { createdBy, buildID, buildStatus: status, cpuCount } = Template.parse(template)
  assert.deepEqual(
    [createdBy !== null, buildID, status, cpuCount],
    [true, '00000000-0000-0000-0000-000000000000', 'waiting', 0],
  )
})

const badStarts: readonly (readonly [object, RegExp])[] = [
  [{}, /exactly one of/],
  [{ fromImage: '', fromTemplate: '' }, /exactly one of/],
  [{ fromImage: 'e2bdev/base', fromTemplate: 'base' }, /exactly one of/],
  [{ fromTemplate: 'base', steps: [{}] }, /body\.steps\.0\.type/],
  [{ fromTemplate: 'base', steps: [{ type: 'RUN', args: [1] }] }, /body\.steps\.0\.args\.0/],
  [{ fromTemplate: 'base', steps: [{ type: 'COPY', filesHash: 'x' }] }, /filesHash: must be 64/],
]

test('a bad start is refused and the build still waits; a good one works once', async () => {
  await using api = await startApiUnderTest()
  const one = await requestBuild(api)
  for (const [body, message] of badStarts) {
    const { status, json } = await startBuild(api, one, body)
    assert.equal(status, 400)
    assert.match(Object(json).message, message)
  }
  assert.equal(Object((await buildStatus(api, one)).json).status, 'waiting')
  assert.equal((await startBuild(api, { ...one, buildId: 'nonsense' })).status, 400)
  assert.equal((await startBuild(api, { ...one, buildId: randomUUID() })).status, 404)
  assert.equal((await startBuild(api, { ...one, templateId: 'unknown' })).status, 404)
  const replies = await Promise.all([startBuild(api, one), startBuild(api, one)])
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([202, 400]))
})

test('a node that takes nothing new starts no build', async () => {
  const token = { 'x-admin-token': 'operators-only-token' }
  await using api = await startApiUnderTest({ env: { ATOLL_ADMIN_TOKEN: token['x-admin-token'] } })
  const one = await requestBuild(api)
  await api.call('POST', '/nodes/sim', { headers: token, body: { status: 'draining' } })
  assert.equal((await startBuild(api, one)).status, 503)
  await api.call('POST', '/nodes/sim', { headers: token, body: { status: 'ready' } })
  assert.equal((await startBuild(api, one)).status, 202)
})

test('templates and builds of another team are forbidden, and stay as they were', async () => {
  await using api = await startApiUnderTest()
  const one = await requestBuild(api)
  const { templateId } = one
  const theirs = api.theirs.apiKey
  const headers = { 'x-api-key': theirs }
  const call = async (method: string, path: string, body?: object) =>
    (await api.call(method, path, { headers, ...(body && { body }) })).status
  const refused = [
    (await startBuild(api, one, { fromTemplate: 'base' }, theirs)).status,
    (await buildStatus(api, one, '', theirs)).status,
    await call('GET', `/templates/${templateId}/builds/${one.buildId}/logs`),
    await call('GET', `/templates/${templateId}`),
    await call('GET', `/templates/${templateId}/files/${'0'.repeat(64)}`),
    await call('PATCH', `/templates/${templateId}`, { public: true }),
    await call('PATCH', `/v2/templates/${templateId}`, { public: true }),
    await call('DELETE', `/templates/${templateId}`),
    await call('GET', `/templates/aliases/${templateId}`),
  ]
  assert.deepEqual(
    refused,
    refused.map(() => 403),
  )
  assert.equal(Object((await buildStatus(api, one)).json).status, 'waiting')
  assert.equal(Object((await api.call('GET', `/templates/${templateId}`)).json).public, false)
})

test('the templates of the installation cannot be built or changed', async () => {
  await using api = await startApiUnderTest()
  assert.equal((await api.call('GET', '/templates/base')).status, 403)
  const body = { public: false }
  assert.equal((await api.call('PATCH', '/v2/templates/base', { body })).status, 403)
})

test('other teams can use a template while it is public', async () => {
  await using api = await startApiUnderTest()
  const { templateId } = await build(api)
  const headers = { 'x-api-key': api.theirs.apiKey }
  const use = async (templateID: string) =>
    (await api.call('POST', '/v2/sandboxes', { headers, body: { templateID } })).status
  const publish = (isPublic?: boolean) =>
    api.call('PATCH', `/v2/templates/${templateId}`, { body: { public: isPublic } })
  assert.equal(await use(templateId), 404)
  const { status, json } = await publish(true)
  const [name] = Object(json).names
  assert.match(name, /^[a-z0-9-]+\/mine$/)
  assert.deepEqual([status, json], [200, { names: [name] }])
  assert.deepEqual([await use(templateId), await use(name), await use('mine')], [201, 201, 404])
  assert.equal((await publish()).status, 200)
  assert.equal(await use(name), 201)
  await publish(false)
  assert.equal(await use(name), 404)
})

test('the older request to publish makes the name usable without the namespace, if that is free', async () => {
  await using api = await startApiUnderTest()
  const { templateId } = await build(api)
  const headers = { 'x-api-key': api.theirs.apiKey }
  const body = { public: true }
  const published = await api.call('PATCH', `/templates/${templateId}`, { body })
  assert.deepEqual([published.status, published.text], [200, ''])
  assert.equal((await api.call('PATCH', `/templates/${templateId}`, { body })).status, 200)
  const use = { headers, body: { templateID: 'mine' } }
  assert.equal((await api.call('POST', '/v2/sandboxes', use)).status, 201)
  const { json } = await ask(api, { name: 'mine' }, api.theirs.apiKey)
  const path = `/templates/${Object(json).templateID}`
  assert.equal((await api.call('PATCH', path, { headers, body })).status, 409)
  assert.equal(Object((await api.call('GET', path, { headers })).json).public, false)
})

test('the builds of a template come in pages, newest first', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  const ids: string[] = []
  let templateId = ''
  for (const tag of ['a', 'b', 'c', 'd', 'e']) {
    // Some builds have the same time: ties must not be lost between pages.
    if (tag === 'd') clock.advance(1)
    const asked = await requestBuild(api, { tags: [tag] })
    ;({ templateId } = asked)
    ids.push(asked.buildId)
  }
  const seen: string[] = []
  let more = ''
  for (;;) {
    const page = await api.call('GET', `/templates/${templateId}?limit=2${more}`)
    assert.equal(page.status, 200, page.text)
    seen.push(...Object(page.json).builds.map(({ buildID }: { buildID: string }) => buildID))
    const token = page.headers.get('x-next-token')
    if (token === null) break
    more = `&nextToken=${token}`
  }
  assert.deepEqual(seen.toSorted(), ids.toSorted())
  assert.deepEqual(seen.slice(0, 2).toSorted(), ids.slice(3).toSorted())
})
