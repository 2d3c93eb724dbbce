import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

const body = { templateID: 'tools-v1' }

async function stateOf(api: ApiUnderTest): Promise<{ state: string; progress?: object }> {
  const { json } = await api.call('GET', '/catalogue')
  return Object(json)[0]
}

test('the first create of a catalogue template installs it, for all teams', async () => {
  await using api = await startApiUnderTest()
  assert.deepEqual(await stateOf(api), {
    name: 'tools',
    templateName: 'tools-v1',
    description: 'Tools for tests',
    state: 'absent',
  })
  const created = await api.call('POST', '/v2/sandboxes', { body })
  assert.equal(created.status, 201, created.text)
  assert.equal(api.node.running.get(Object(created.json).sandboxID)?.templateId, 'toolsv1')
  assert.equal((await stateOf(api)).state, 'installed')
  const headers = { 'x-api-key': api.theirs.apiKey }
  assert.equal((await api.call('POST', '/v2/sandboxes', { body, headers })).status, 201)
  const listed = await api.call('GET', '/templates', { headers })
  const names = Object(listed.json).map((one: { names: string[] }) => one.names[0])
  assert.deepEqual(names, ['base', 'tools-v1'])
  assert.equal(api.node.catalogue.requests.length, 1)
})

test('requests at once share one install, and creates wait for it', async () => {
  await using api = await startApiUnderTest()
  const release = api.node.hold('install')
  const first = api.call('POST', '/v2/sandboxes', { body })
  const installed = await api.call('POST', '/catalogue/tools/install')
  assert.equal(installed.status, 202)
  const second = api.call('POST', '/v2/sandboxes', { body })
  await waitFor('the install to report progress', async () => {
    const { state, progress } = await stateOf(api)
    return state === 'installing' && Object(progress).percent === 50
  })
  release()
  assert.deepEqual([(await first).status, (await second).status], [201, 201])
  assert.equal(api.node.catalogue.requests.length, 1)
})

test('an install continues when the client leaves', async () => {
  await using api = await startApiUnderTest()
  const release = api.node.hold('install')
  const leaving = new AbortController()
  const left = api.call('POST', '/v2/sandboxes', { body, signal: leaving.signal })
  await waitFor('the install to begin', async () => api.node.catalogue.requests.length === 1)
  leaving.abort()
  await assert.rejects(left)
  release()
  await waitFor('the install to end', async () => (await stateOf(api)).state === 'installed')
})

test('a failed install is reported, and the next create tries again', async () => {
  await using api = await startApiUnderTest()
  api.node.fail('install', Code.Unavailable)
  const failed = await api.call('POST', '/v2/sandboxes', { body })
  assert.deepEqual([failed.status, (await stateOf(api)).state], [503, 'failed'])
  assert.match(failed.text, /could not be installed/)
  api.node.fail('install', undefined)
  assert.equal((await api.call('POST', '/v2/sandboxes', { body })).status, 201)
})

test('teams may not install where only operators may', async () => {
  const token = 'operators-only-token'
  const env = { ATOLL_INSTALL_TEMPLATES: 'by-operator', ATOLL_ADMIN_TOKEN: token }
  await using api = await startApiUnderTest({ env })
  for (const refused of [
    await api.call('POST', '/v2/sandboxes', { body }),
    await api.call('POST', '/catalogue/tools/install'),
  ]) {
    assert.equal(refused.status, 409)
    assert.match(refused.text, /atoll template install tools/)
  }
  assert.deepEqual(api.node.catalogue.requests, [])
  const headers = { 'x-admin-token': token }
  const installed = await api.call('POST', '/admin/catalogue/tools/install', { headers })
  assert.equal(installed.status, 202)
  await waitFor('the install to end', async () => (await stateOf(api)).state === 'installed')
  assert.equal((await api.call('POST', '/v2/sandboxes', { body })).status, 201)
})

test('an installed template whose files are gone is installed again', async () => {
  await using api = await startApiUnderTest()
  assert.equal((await api.call('POST', '/v2/sandboxes', { body })).status, 201)
  await api.restart()
  assert.equal((await stateOf(api)).state, 'installed')
  api.node.catalogue.uninstall()
  await api.restart()
  assert.equal((await stateOf(api)).state, 'absent')
  assert.equal((await api.call('POST', '/v2/sandboxes', { body })).status, 201)
  assert.equal(api.node.catalogue.requests.length, 2)
})

/** The template is installed on the first node. Then a node joins that lacks it. */
async function setUpLateNode(env: Record<string, string> = {}) {
  const late = simulateNode(undefined, 'late')
  late.failAll(Code.Unavailable)
  const admin = { headers: { 'x-admin-token': 'operators-only-token' } }
  const api = await startApiUnderTest({
    others: [late],
    env: { ATOLL_ADMIN_TOKEN: 'operators-only-token', ...env },
  })
  const installed = await api.call('POST', '/admin/catalogue/tools/install', admin)
  assert.equal(installed.status, 202)
  await waitFor('the install', async () => (await stateOf(api)).state === 'installed')
  late.failAll(undefined)
  await waitFor('the late node', async () => (await stateOf(api)).state === 'absent')
  const setStatus = (id: string, status: string) =>
    api.call('POST', `/nodes/${id}`, { ...admin, body: { status } })
  return {
    ...{ api, late, setStatus, create: () => api.call('POST', '/v2/sandboxes', { body }) },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

test('a node that joins later gets an installed template too, and creates do not wait for it', async () => {
  await using setup = await setUpLateNode()
  const { api, late, create } = setup
  const release = late.hold('install')
  for (let count = 1; count <= 5; count += 1) assert.equal((await create()).status, 201)
  assert.deepEqual([api.node.running.size, late.running.size], [5, 0])
  await waitFor('the install', () => late.catalogue.requests.length === 1)
  release()
  await waitFor('its end', async () => (await stateOf(api)).state === 'installed')
  await setup.setStatus('sim', 'draining')
  assert.equal((await create()).status, 201)
  assert.equal(late.running.size, 1)
})

test('creates wait for the install if no node has the template that takes new sandboxes', async () => {
  await using setup = await setUpLateNode()
  await setup.setStatus('sim', 'draining')
  assert.equal((await setup.create()).status, 201)
  assert.equal(setup.late.running.size, 1)
})

test('where only operators may install, creates use the nodes that have the template', async () => {
  await using setup = await setUpLateNode({ ATOLL_INSTALL_TEMPLATES: 'by-operator' })
  const { api, late, create } = setup
  for (let count = 1; count <= 5; count += 1) assert.equal((await create()).status, 201)
  assert.deepEqual([api.node.running.size, late.running.size], [5, 0])
  assert.equal(late.catalogue.requests.length, 0)
})

test('a failed install on the late node is not tried again by each create', async () => {
  await using setup = await setUpLateNode()
  const { api, late, create } = setup
  late.fail('install', Code.Unavailable)
  assert.equal((await create()).status, 201)
  await waitFor('the failure', async () => (await stateOf(api)).state === 'failed')
  assert.equal((await create()).status, 201)
  assert.equal(late.catalogue.requests.length, 1)
})

test('a name with a tag or a namespace, or of the team itself, installs nothing', async () => {
  await using api = await startApiUnderTest()
  await api.call('POST', '/v3/templates', { body: { name: 'tools-v1' } })
  for (const templateID of ['tools-v1', 'tools-v1:x', 'other/tools-v1']) {
    const { status } = await api.call('POST', '/v2/sandboxes', { body: { templateID } })
    assert.equal(status, 404, templateID)
  }
  assert.deepEqual(api.node.catalogue.requests, [])
})

test('templates are built from a catalogue template', async () => {
  await using api = await startApiUnderTest()
  const requested = await api.call('POST', '/v3/templates', { body: { name: 'mine' } })
  const { templateID, buildID } = Object(requested.json)
  const path = `/v2/templates/${templateID}/builds/${buildID}`
  const started = await api.call('POST', path, { body: { fromTemplate: 'tools-v1' } })
  assert.equal(started.status, 202, started.text)
  await waitFor('the build to end', async () => {
    const progress = await api.call('GET', `/templates/${templateID}/builds/${buildID}/status`)
    return Object(progress.json).status !== 'building'
  })
  assert.equal(api.node.builds.requests[0]?.parentId, 'toolsv1')
})
