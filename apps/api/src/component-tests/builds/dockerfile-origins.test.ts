import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Template } from '@atoll/contracts/templates/manage'
import { waitFor } from '@atoll/kit/wait'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { build, buildStatus, requestBuild, waitForBuild } from '../../sim/build-client.ts'
import { startWithSandbox, takeSnapshot } from '../../sim/snapshot-client.ts'

/** Meaning of FROM in a Dockerfile. */

function post(api: ApiUnderTest, body: object) {
  const headers = { authorization: `Bearer ${api.ours.accessToken}` }
  return api.call('POST', '/templates', { body, headers })
}

/** Builds `FROM` this name and returns the parent on the node, and the types of the steps. */
async function parentOf(api: ApiUnderTest, from: string, fields: object = {}) {
  const reply = await post(api, { dockerfile: `FROM ${from}\nRUN echo hi\n`, ...fields })
  assert.equal(reply.status, 202, reply.text)
  const { templateID: templateId, buildID: buildId, diskSizeMB } = Template.parse(reply.json)
  const end = await waitForBuild(api, { templateId, buildId })
  assert.equal(end.status, 'ready', JSON.stringify(end))
  const order = api.node.builds.requests.at(-1)
  const parent = order?.image ? `image ${order.image.reference}` : order?.parentId
  const { json } = await buildStatus(api, { templateId, buildId })
  const [first] = Object(json).logEntries
  return { parent, steps: order?.steps.map(({ type }) => type), diskSizeMB, note: first?.message }
}

test('FROM means a template of this installation before an image of a registry', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_BASE_DISK_SIZE_MB: '2048' } })
  await build(api, { name: 'mine', minFreeDiskMb: 3000 })
  const mine = api.node.builds.requests.at(-1)?.templateId
  for (const name of ['mine', 'MINE', 'mine:default']) {
    assert.deepEqual((await parentOf(api, name)).parent, mine, name)
  }
  for (const name of ['base', 'e2bdev/base', 'docker.io/e2bdev/base:latest', 'base:default']) {
    const found = await parentOf(api, name)
    assert.deepEqual([found.parent, found.diskSizeMB], ['base', 2048], name)
  }
  for (const name of ['tools', 'tools-v1', 'e2bdev/tools', 'e2bdev/tools:latest']) {
    assert.equal((await parentOf(api, name)).parent, 'toolsv1', name)
  }
  for (const name of ['debian', 'mine:1.0', 'e2bdev/other', 'ghcr.io/e2bdev/base', 'some/base']) {
    const found = await parentOf(api, name)
    assert.deepEqual([found.parent, found.diskSizeMB], [`image ${name}`, 2048], name)
  }
})

test('the log says what FROM was taken for', async () => {
  await using api = await startApiUnderTest()
  const { templateId } = await build(api, { name: 'mine' })
  for (const [name, note] of [
    ['mine', `[base] mine is the template ${templateId}`],
    ['e2bdev/base', '[base] base is a template of this installation'],
    [
      'python:3',
      '[base] python:3 is an image: there is no template of this name that the team may use',
    ],
  ] as const) {
    assert.equal((await parentOf(api, name)).note, note)
  }
})

test('steps run as root from base and from images, and with the user of a template of a team', async () => {
  await using api = await startApiUnderTest()
  await build(api, { name: 'mine', minFreeDiskMb: 9000 })
  const around = ['USER', 'WORKDIR', 'RUN', 'USER', 'WORKDIR']
  assert.deepEqual((await parentOf(api, 'base')).steps, around)
  assert.deepEqual((await parentOf(api, 'tools')).steps, around)
  assert.deepEqual((await parentOf(api, 'debian')).steps, around)
  const { steps, diskSizeMB } = await parentOf(api, 'mine')
  assert.deepEqual([steps, diskSizeMB], [['RUN'], 9000])
})

test('a name alone never means the template that is being built', async () => {
  await using api = await startApiUnderTest()
  for (let round = 0; round < 2; round += 1) {
    assert.equal((await parentOf(api, 'node', { alias: 'node' })).parent, 'image node')
    assert.equal((await parentOf(api, 'base', { alias: 'base' })).parent, 'base')
  }
  const own = api.node.builds.requests.at(-1)?.templateId
  assert.equal((await parentOf(api, 'base')).parent, own)
  assert.equal((await parentOf(api, 'base:default', { alias: 'base:v2' })).parent, own)
})

test('a template of another team looks absent unless it is public', async () => {
  const { api, slug } = await startWithSandbox()
  await using _ = api
  const { templateId } = await build(api, { name: 'secret' })
  const headers = { authorization: `Bearer ${api.theirs.accessToken}` }
  const theirs = async (from: string) => {
    const body = { dockerfile: `FROM ${from}` }
    const { status, json, text } = await api.call('POST', '/templates', { body, headers })
    assert.equal(status, 202, text)
    const { templateID, buildID } = Object(json)
    const path = `/templates/${templateID}/builds/${buildID}/status`
    await waitFor('the end of the build', async () =>
      ['ready', 'error'].includes(Object((await api.call('GET', path, { headers })).json).status),
    )
    return api.node.builds.requests.at(-1)
  }
  const names = ['secret', templateId, `${slug}/secret`]
  for (const name of names) assert.equal((await theirs(name))?.image?.reference, name)
  await api.call('PATCH', `/v2/templates/${templateId}`, { body: { public: true } })
  assert.ok((await theirs(templateId))?.parentId)
})

test('a template without a ready build, and a snapshot, cannot be the parent', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api, { name: 'unfinished' })
  const unready = await post(api, { dockerfile: 'FROM unfinished', alias: 'child' })
  assert.equal(unready.status, 404)
  assert.match(unready.text, /no ready build/)
  const dockerfile = `FROM ${await takeSnapshot(api, await api.create())}`
  const snapshot = await post(api, { dockerfile, alias: 'child' })
  assert.equal(snapshot.status, 400, snapshot.text)
  assert.match(snapshot.text, /snapshot/)
  assert.doesNotMatch((await api.call('GET', '/templates')).text, /child/)
})
