import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiOptions } from '../../sim/api.ts'
import {
  requestBuild,
  build,
  buildStatus,
  waitForBuild,
  startBuild,
} from '../../sim/build-client.ts'

/** Template builds: request, start, run and use. */

async function setup(options: ApiOptions = {}) {
  const api = await startApiUnderTest(options)
  const slug = await api.withStores(async ({ teams }) => {
    return (await teams.find(api.ours.teamId))?.slug ?? assert.fail('no team')
  })
  return { api, slug }
}

test('a template is asked for, built and used, and looks as its owner expects', async () => {
  const clock = manualClock()
  const { api, slug } = await setup({ clock })
  await using _ = api
  const body = { name: 'Mine', cpuCount: 4, memoryMB: 512 }
  const asked = await api.call('POST', '/v3/templates', { body })
  const { templateID, buildID } = Object(asked.json)
  assert.match(templateID, /^[a-z0-9]{20}$/)
  assert.deepEqual(asked.json, {
    templateID,
    buildID,
    public: false,
    names: [`${slug}/mine`],
    tags: ['default'],
    aliases: ['mine'],
  })
  const one = { templateId: templateID, buildId: buildID }
  const waiting = { status: 'waiting', templateID, buildID, logs: [], logEntries: [] }
  assert.deepEqual((await buildStatus(api, one)).json, waiting)

  const steps = [
    { type: 'RUN', args: ['echo hi'], force: true, gzip: true },
    { type: 'COPY', args: ['a', 'b', '', ''], filesHash: 'a'.repeat(64) },
    { type: 'USER' },
  ]
  const recipe = { fromImage: 'e2bdev/base', force: true, steps, startCmd: 'serve', readyCmd: '' }
  const started = await startBuild(api, one, recipe)
  assert.deepEqual(
    [started.status, started.text, started.headers.get('content-length')],
    [202, '', '0'],
  )
  assert.equal((await waitForBuild(api, one)).status, 'ready')

  const [order] = api.node.builds.requests
  const { parentId, ownerId, cpuCount, memoryMb, diskSizeMb, force } = order ?? assert.fail()
  assert.deepEqual(
    [parentId, ownerId, cpuCount, memoryMb, diskSizeMb, force],
    ['base', api.ours.teamId, 4, 512, 4096, true],
  )
  assert.deepEqual([order?.startCommand, order?.readyCommand], ['serve', undefined])
  assert.deepEqual(
    order?.steps.map(({ type, args, filesHash, force: anew }) => [type, args, filesHash, anew]),
    [
      ['RUN', ['echo hi'], undefined, true],
      ['COPY', ['a', 'b', '', ''], 'a'.repeat(64), false],
      ['USER', [], undefined, false],
    ],
  )

  const id = await api.create({ templateID: 'mine' })
  const sandbox = api.node.running.get(id)
  assert.deepEqual([sandbox?.templateId, sandbox?.cpuCount], [order?.templateId, 4])
  const detail = Object((await api.call('GET', `/templates/${templateID}`)).json)
  const time = clock.now().toISOString()
  assert.deepEqual(detail, {
    templateID,
    public: false,
    aliases: ['mine'],
    names: [`${slug}/mine`],
    createdAt: time,
    updatedAt: time,
    lastSpawnedAt: time,
    spawnCount: 1,
    builds: [
      {
        buildID,
        status: 'ready',
        createdAt: time,
        updatedAt: time,
        finishedAt: time,
        cpuCount: 4,
        memoryMB: 512,
        diskSizeMB: 4096,
      },
    ],
  })
  const [listed] = Object((await api.call('GET', '/v2/templates')).json).filter(
    (template: { templateID: string }) => template.templateID === templateID,
  )
  assert.deepEqual(
    [listed.buildID, listed.buildStatus, listed.memoryMB, listed.buildCount],
    [buildID, 'ready', 512, 1],
  )
})

test('a second build of a name belongs to the same template, and its tags select it once it is ready', async () => {
  const { api } = await setup()
  await using _ = api
  const first = await build(api, { name: 'mine:v1', tags: ['v1', 'stable'] })
  assert.equal(
    (await api.call('POST', '/v2/sandboxes', { body: { templateID: 'mine' } })).status,
    404,
  )
  const [one] = api.node.builds.templates
  const templateOf = async (templateID: string) =>
    api.node.running.get(await api.create({ templateID }))?.templateId
  assert.deepEqual([await templateOf('mine:v1'), await templateOf('mine:stable')], [one, one])

  const release = api.node.hold('build')
  const second = await requestBuild(api, { name: 'mine:v1' })
  assert.equal(second.templateId, first.templateId)
  await startBuild(api, second)
  assert.equal(await templateOf('mine:v1'), one)
  release()
  await waitForBuild(api, second)
  const [, two] = api.node.builds.templates
  assert.deepEqual([await templateOf('mine:v1'), await templateOf('mine:stable')], [two, one])
  assert.equal(await templateOf(`mine:${first.buildId}`), one)
  const tags = Object((await api.call('GET', '/templates/mine/tags')).json)
  assert.deepEqual(
    tags.map(({ tag, buildID }: { tag: string; buildID: string }) => [tag, buildID]),
    [
      ['stable', first.buildId],
      ['v1', second.buildId],
    ],
  )
})

test('a template is built from another one of the team, and its disk is at least that of its parent', async () => {
  const { api } = await setup({ env: { ATOLL_BASE_DISK_SIZE_MB: '1000' } })
  await using _ = api
  await build(api, { name: 'parent', minFreeDiskMb: 3000 })
  const child = await build(api, { name: 'child', minFreeDiskMb: 2000 }, { fromTemplate: 'parent' })
  assert.equal(child.end.status, 'ready')
  const [parent, order] = api.node.builds.requests
  assert.deepEqual(
    [parent?.diskSizeMb, order?.parentId, order?.diskSizeMb],
    [3000, parent?.templateId, 3000],
  )
})

const baseImages = ['e2bdev/base', 'e2bdev/base:latest', 'docker.io/e2bdev/base:v1.2']

for (const fromImage of baseImages) {
  test(`the image ${fromImage} is the template base of the installation`, async () => {
    const { api } = await setup()
    await using _ = api
    await build(api, { name: 'base' }, { fromImage })
    // The name `base` now refers to the team's template; the image still refers to the installation's.
    const { end } = await build(api, {}, { fromImage })
    assert.deepEqual([end.status, api.node.builds.requests[1]?.parentId], ['ready', 'base'])
  })
}

const logins: readonly (readonly [string, object | undefined, object])[] = [
  ['that is public', undefined, {}],
  [
    'that asks for a password',
    { type: 'registry', username: 'me', password: 'secret' },
    { username: 'me', password: 'secret' },
  ],
  [
    'of a service account',
    { type: 'gcp', serviceAccountJson: '{"key":1}' },
    { username: '_json_key', password: '{"key":1}' },
  ],
]

for (const [what, fromImageRegistry, login] of logins) {
  test(`an image ${what} is the node's to fetch`, async () => {
    const { api } = await setup()
    await using _ = api
    const fromImage = 'evil.io/e2bdev/base'
    const { end } = await build(api, {}, { fromImage, fromImageRegistry })
    assert.equal(end.status, 'ready')
    const [order] = api.node.builds.requests
    const { reference, username, password } = order?.image ?? assert.fail()
    assert.equal(reference, fromImage)
    assert.deepEqual({ username, password }, { username: undefined, password: undefined, ...login })
    assert.equal(order?.diskSizeMb, 4096)
  })
}

test('a login that cannot be used is refused before the build begins', async () => {
  const { api } = await setup()
  await using _ = api
  const created = await api.call('POST', '/v3/templates', { body: { name: 'mine' } })
  const { templateID: templateId, buildID: buildId } = Object(created.json)
  const aws = { type: 'aws', awsAccessKeyId: 'a', awsSecretAccessKey: 'b', awsRegion: 'c' }
  const recipe = { fromImage: 'x', fromImageRegistry: aws }
  const refused = await startBuild(api, { templateId, buildId }, recipe)
  assert.equal(refused.status, 400)
  assert.match(refused.text, /aws ecr get-login-password/)
  const { json } = await buildStatus(api, { templateId, buildId })
  assert.equal(Object(json).status, 'waiting')
})

const badParents: readonly (readonly [string, object, RegExp])[] = [
  ['an unknown template', { fromTemplate: 'nothing' }, /nothing was not found/],
  ['a malformed name', { fromTemplate: 'No Such!' }, /malformed/],
  ['an unknown tag', { fromTemplate: 'base:v9' }, /no tag or build v9/],
]

for (const [what, recipe, message] of badParents) {
  test(`a build from ${what} is accepted and fails at its base`, async () => {
    const { api } = await setup()
    await using _ = api
    const { end } = await build(api, {}, recipe)
    assert.deepEqual([end.status, end.reason.step], ['error', 'base'])
    assert.match(end.reason.message, message)
    assert.equal(api.node.builds.requests.length, 0)
    assert.equal(
      (await api.call('POST', '/v2/sandboxes', { body: { templateID: 'mine' } })).status,
      404,
    )
  })
}

test('a snapshot is no parent, and neither is a template of another team unless it is public', async () => {
  const { api } = await setup()
  await using _ = api
  const path = `/sandboxes/${await api.create()}/snapshots`
  await api.call('POST', path, { body: { name: 'copy' } })
  const ofSnapshot = await build(api, {}, { fromTemplate: 'copy' })
  assert.deepEqual([ofSnapshot.end.status, ofSnapshot.end.reason.step], ['error', 'base'])
  assert.match(ofSnapshot.end.reason.message, /is a snapshot/)

  const headers = { 'x-api-key': api.theirs.apiKey }
  const theirs = await api.call('POST', '/v3/templates', { headers, body: { name: 'their' } })
  const { templateID: templateId, buildID: buildId } = Object(theirs.json)
  const recipe = { fromTemplate: 'base' }
  await startBuild(api, { templateId, buildId }, recipe, api.theirs.apiKey)
  await waitFor('their template', () => api.node.builds.templates.size === 1)
  const secret = await build(api, {}, { fromTemplate: templateId })
  assert.match(secret.end.reason.message, /was not found/)
  const published = { headers, body: { public: true } }
  assert.equal((await api.call('PATCH', `/v2/templates/${templateId}`, published)).status, 200)
  assert.equal((await build(api, {}, { fromTemplate: templateId })).end.status, 'ready')
})

test('a failed step is reported with its warnings, and nothing of the build is left', async () => {
  const { api } = await setup()
  await using _ = api
  api.node.builds.setLog(
    { step: '1', level: 'warn', message: 'of another step' },
    { step: '2', message: 'fine' },
    { step: '2', level: 'warn', message: 'hm' },
    { step: '2', level: 'error', message: 'no such command' },
  )
  api.node.builds.failAt('2', 'exit status 127')
  const { end, ...one } = await build(api)
  assert.equal(end.status, 'error')
  const { message, step, logEntries } = end.reason
  assert.deepEqual([message, step], ['exit status 127', '2'])
  assert.deepEqual(
    logEntries.map((entry: { message: string }) => entry.message),
    ['hm', 'no such command'],
  )
  assert.equal((await startBuild(api, one)).status, 400)
  assert.equal(
    (await api.call('POST', '/v2/sandboxes', { body: { templateID: 'mine' } })).status,
    404,
  )
})

test('an internal failure of the node is not quoted', async () => {
  const { api } = await setup()
  await using _ = api
  api.node.builds.setLog({ step: '3', message: 'so far' })
  api.node.fail('build', Code.Internal)
  const { end } = await build(api)
  assert.deepEqual([end.status, end.reason.step], ['error', '3'])
  assert.doesNotMatch(end.reason.message, /simulated/)
})
